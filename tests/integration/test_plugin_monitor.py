"""The monitor of the Claude Code plugin: armed once by Claude Code, it starts a killed streamer again by itself."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.integration.claude_stand_in import ClaudeStandIn, claude_stand_in

LIMIT_S = 40
BOB = "bob"


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[ClaudeStandIn]:
    async with claude_stand_in(tmp_path) as stand_in:
        yield stand_in


async def restarted(claude: ClaudeStandIn, pid: int) -> int:
    """Kill the streamer; the pid of the one that serves the session after it."""
    former = await claude.channel.waiter(claude.address)
    assert former is not None
    os.kill(pid, signal.SIGKILL)
    await claude.channel.until_waiter(claude.address, lambda row: row["process"] != former["process"])
    return await claude.until_active()


@pytest.mark.fault("F1")
async def test_a_killed_streamer_of_a_plugin_is_started_again_and_nothing_is_lost_or_shown_twice(
    claude: ClaudeStandIn,
) -> None:
    """It is armed before the session joins, and quiet until then."""
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor(claude.plugin_command) as host:
            first = await claude.until_active()
            joined = await claude.join(BOB)
            await claude.peer.send("one", BOB)
            await claude.channel.until_states(["seen"], to=BOB)
            second = await restarted(claude, first)
            await claude.peer.send("two", BOB)
            await claude.channel.until_states(["seen"] * 2, to=BOB)
            os.kill(second, signal.SIGTERM)
            ended = await host.wait_ended()
        joined_deaf = await claude.join(BOB)
    assert joined["waiter"] == "active"
    assert "command" not in joined
    assert [(text, header.repeat) for header, text in claude.shown] == [("one", False), ("two", False)]
    assert claude.said == []
    assert ended == 0
    assert (joined_deaf["waiter"], joined_deaf["command"]) == ("offline", claude.command)


@pytest.mark.fault("F54")
@pytest.mark.parametrize("plugin_is_first", [True, False])
async def test_of_a_plugins_monitor_and_the_sessions_own_one_prints_and_the_other_says_so_and_ends(
    claude: ClaudeStandIn, plugin_is_first: bool
) -> None:
    commands = [claude.plugin_command, claude.command]
    first, second = commands if plugin_is_first else reversed(commands)
    with anyio.fail_after(LIMIT_S):
        await claude.join(BOB)
        async with claude.monitor(first):
            serving = await claude.until_active()
            async with claude.monitor(second) as other:
                ended = await other.wait_ended()
                await claude.peer.send("once", BOB)
                await claude.channel.until_states(["seen"], to=BOB)
            still_serving = await claude.until_active()
    assert ended == 0
    assert serving == still_serving
    assert [text for _, text in claude.shown] == ["once"]
    assert claude.said == [
        "agent-channel: another streamer serves this session already, so this one ends. Nothing is lost."
    ]


async def test_what_ends_the_streamer_but_a_signal_is_told_and_not_tried_again(claude: ClaudeStandIn) -> None:
    """A schema of a newer version, a Python that is gone: a person has to do something."""
    claude.database.unlink()
    claude.database.mkdir()
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor(claude.plugin_command) as host:
            ended = await host.wait_ended()
            await claude.notifications.wait_for(lambda each: each.kind == "failed")
    assert ended == 1
    assert len(claude.said) == 1
