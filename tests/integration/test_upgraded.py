"""A newer version upgrades the file while servers, a thread's waiter and a streamer of the older one run on it."""

import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from channel.wakeups import ring
from tests.another_session import ROOM
from tests.integration.claude_stand_in import ClaudeStandIn, claude_stand_in
from tests.integration.harness_stand_in import HarnessStandIn, harness_stand_in
from tests.integration.server import Refused, ServerClient, running_server
from tests.newer_version import contents, upgrade

LIMIT_S = 50
WHAT_TO_DO = "Restart this session (with the newer agent-channel); nothing was written."

Call = Callable[[ServerClient], Awaitable[object]]
CALLS: dict[str, Call] = {
    "join": lambda server: server.call("join", room=ROOM, name="alice"),
    "send": lambda server: server.call("send", text="x", room=ROOM),
    "rename": lambda server: server.call("rename", name="anna"),
    "leave": lambda server: server.call("leave"),
}


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[ClaudeStandIn]:
    async with claude_stand_in(tmp_path) as stand_in:
        await stand_in.join("bob")
        yield stand_in


def bells(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT bell FROM waiters WHERE bell <> ''")]


async def until_waiters_serve(claude: ClaudeStandIn, thread: HarnessStandIn) -> None:
    await thread.join("codex")
    await claude.channel.until_active(claude.address)
    await claude.channel.until_active(thread.address)


@pytest.mark.fault("F53")
async def test_what_runs_on_under_an_upgrade_writes_nothing_more_and_says_in_one_line_what_to_do(
    claude: ClaudeStandIn, tmp_path: Path
) -> None:
    path = claude.channel.channel.database.path
    said: dict[str, str] = {}
    with anyio.fail_after(LIMIT_S):
        async with (
            running_server(path) as server,
            harness_stand_in(tmp_path, path) as thread,
            claude.monitor() as monitor,
        ):
            await server.call("join", room=ROOM, name="alice")
            await until_waiters_serve(claude, thread)
            upgrade(path)
            before = contents(path)
            ring(bells(path))
            exit_code = await monitor.wait_ended()
            await claude.notifications.wait_for(lambda each: each.kind == "failed")
            for name, call in CALLS.items():
                with pytest.raises(Refused) as refused:
                    await call(server)
                said[name] = refused.value.text
            os.kill(thread.server.pid, signal.SIGTERM)
            await thread.wait_server_ended()
    after = contents(path)
    assert exit_code == 1
    assert len(claude.said) == 1
    assert all(WHAT_TO_DO in line for line in [*claude.said, *said.values()])
    assert after == before
