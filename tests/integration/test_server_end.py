"""The end of the server process, by each of its causes alone: in time, and with a word in the channel."""

import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from tests.another_session import ChannelView, open_view
from tests.integration.harness_stand_in import HarnessStandIn, harness_stand_in

LIMIT_S = 40
ENDS_WITHIN_S = 2
"""It takes 0.1 s on a quiet machine, and a killed harness's server must not outlive it by more."""

End = Callable[[HarnessStandIn], Awaitable[None]]


async def end_of_input(harness: HarnessStandIn) -> None:
    await harness.client.close_input()


async def terminate(harness: HarnessStandIn) -> None:
    os.kill(harness.server.pid, signal.SIGTERM)


async def interrupt(harness: HarnessStandIn) -> None:
    os.kill(harness.server.pid, signal.SIGINT)


async def hang_up(harness: HarnessStandIn) -> None:
    os.kill(harness.server.pid, signal.SIGHUP)


async def kill_parent(harness: HarnessStandIn) -> None:
    harness.process.kill()


ENDS = [end_of_input, terminate, interrupt, hang_up, kill_parent]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "channel" / "channel.db"


@pytest.fixture
async def channel(database: Path) -> AsyncIterator[ChannelView]:
    async with open_view(database) as view:
        yield view


@pytest.fixture
async def harness(tmp_path: Path, database: Path) -> AsyncIterator[HarnessStandIn]:
    async with harness_stand_in(tmp_path, database) as stand_in:
        yield stand_in


@pytest.mark.fault("F31")
@pytest.mark.parametrize("end", ENDS)
async def test_the_server_ends_in_time_and_says_that_its_waiter_is_gone(
    harness: HarnessStandIn, channel: ChannelView, end: End
) -> None:
    with anyio.fail_after(LIMIT_S):
        answer = await harness.join("codex")
        served = await channel.waiter(harness.address)
        await end(harness)
        with anyio.fail_after(ENDS_WITHIN_S):
            await harness.wait_server_ended()
        after = await channel.waiter(harness.address)
    assert answer["waiter"] == "active"
    assert served is not None and served["released_at_ms"] is None
    assert after is not None and after["released_at_ms"] is not None
    assert not Path(served["bell"]).exists()


@pytest.mark.fault("F30")
@pytest.mark.fault("F31")
@pytest.mark.parametrize("end", ENDS)
async def test_a_server_that_nobody_has_spoken_to_yet_ends_too(harness: HarnessStandIn, end: End) -> None:
    with anyio.fail_after(LIMIT_S):
        await harness.client.request("ping")  # its handlers stand; no handshake was made
        await end(harness)
        with anyio.fail_after(ENDS_WITHIN_S):
            await harness.wait_server_ended()


async def test_a_server_that_fails_says_why_on_its_standard_error(database: Path) -> None:
    """Ours: it ended without a word, as after a clean end of input."""
    program = (
        "import sys; from harness_adapters import mcp_server\n"
        "mcp_server.AnsweringReadStream = None\n"
        "sys.exit(mcp_server.main(sys.argv[1:]))"
    )
    with anyio.fail_after(LIMIT_S):
        ended = await anyio.run_process([sys.executable, "-c", program, "--db", str(database)], check=False)
    assert b"the server ends by a failure" in ended.stderr
    assert b"TypeError" in ended.stderr


@pytest.mark.fault("F31")
async def test_a_database_that_another_process_locks_does_not_hold_up_the_end(
    harness: HarnessStandIn, channel: ChannelView, database: Path
) -> None:
    """SQLite would wait for 5 s. The role reads offline all the same: its process is gone."""
    with anyio.fail_after(LIMIT_S):
        await harness.join("codex")
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await terminate(harness)
            with anyio.fail_after(ENDS_WITHIN_S):
                await harness.wait_server_ended()
            other.execute("ROLLBACK")
        assert not await channel.channel.leases.is_held(harness.address)


@pytest.mark.fault("F3")
async def test_a_harness_killed_while_another_process_holds_its_pipes_is_offline_to_others(
    harness: HarnessStandIn, channel: ChannelView
) -> None:
    with anyio.fail_after(LIMIT_S):
        await harness.join("codex")
        peer = channel.session("peer")
        await peer.join("peer")
        before = await peer.send("are you there?", "codex")
        await kill_parent(harness)
        await channel.until_offline(harness.address)
        after = await peer.send("and now?", "codex")
    assert before["to"]["codex"]["waiter"].startswith("active")
    assert "offline since" in after["to"]["codex"]["waiter"]
