"""Another process holds the database locked: servers answer their handshake, tools say so, streamers go on after it."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path

import anyio
import pytest

from tests.another_session import ROOM
from tests.integration.claude_stand_in import ClaudeStandIn, claude_stand_in
from tests.integration.server import Refused, ServerClient, running_server

LIMIT_S = 50
"""SQLite gives up after 5 s, and a server that opens the file waits for 8 s."""

SERVERS = 4
BUSY = "locked by another process. Nothing was stored; try again"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture(params=["a file in use", "a new file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """To a new one, that has no write-ahead log yet, the lock leaves not even readers."""
    path = tmp_path / "channel" / "channel.db"
    path.parent.mkdir(mode=0o700)
    if request.param == "a file in use":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    path.touch(mode=0o600)
    return path


@pytest.mark.fault("F39")
async def test_four_servers_started_under_a_lock_answer_their_handshake_say_busy_and_work_after_it(
    database: Path,
) -> None:
    said: list[str] = []

    async def be_refused(server: ServerClient, name: str) -> None:
        with pytest.raises(Refused) as refused:
            await server.call("join", room=ROOM, name=name)
        said.append(refused.value.text)

    with anyio.fail_after(LIMIT_S):
        async with AsyncExitStack() as servers:
            with locked(database):
                started = [await servers.enter_async_context(running_server(database)) for _ in range(SERVERS)]
                tools = [(await server.client.list_tools()).tools for server in started]
                async with anyio.create_task_group() as calls:
                    for number, server in enumerate(started):
                        calls.start_soon(be_refused, server, f"role{number}")
            joined = [await server.call("join", room=ROOM, name=f"role{n}") for n, server in enumerate(started)]
    assert all(tools)
    assert len(said) == SERVERS
    assert all(BUSY in text for text in said)
    assert joined[-1]["registered_roles"] == [f"role{number}" for number in range(SERVERS)]


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[ClaudeStandIn]:
    async with claude_stand_in(tmp_path) as stand_in:
        await stand_in.join("bob")
        yield stand_in


@pytest.mark.fault("F39")
async def test_a_streamer_under_a_lock_says_so_once_and_goes_on_after_it(claude: ClaudeStandIn) -> None:
    await claude.peer.send("before", "bob")
    with anyio.fail_after(LIMIT_S):
        with locked(claude.channel.channel.database.path):
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(claude.monitor())
                await claude.notifications.wait_for(lambda _: len(claude.said) == 1)
                monitors = stack.pop_all()
        async with monitors:
            await claude.until_shown(1)
            await claude.peer.send("after", "bob")
            shown = await claude.until_shown(2)
    assert BUSY in claude.said[0]
    assert len(claude.said) == 1
    assert [(text, header.repeat) for header, text in shown] == [("before", False), ("after", False)]
