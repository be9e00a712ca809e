"""The server registered twice in one Claude Code session, as a plugin and by hand: one session all the same."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from harness_adapters.callers import CLAUDE_CLIENT
from tests.another_session import ROOM
from tests.integration.claude_stand_in import PEER, ClaudeStandIn, claude_stand_in
from tests.integration.harness_stand_in import RawClient, server_command

LIMIT_S = 40


@asynccontextmanager
async def server_of(claude: ClaudeStandIn, *wrapper: str) -> AsyncIterator[RawClient]:
    """A server process that the session started, through a wrapper where one is given."""
    command = [*wrapper, *server_command(claude.database)]
    async with await anyio.open_process(command, env=claude.environment) as process:
        client = RawClient(process, CLAUDE_CLIENT)
        await client.begin_handshake()
        await client.finish_handshake()
        yield client


@pytest.mark.fault("F52")
@pytest.mark.fault("F54")
async def test_two_servers_of_a_session_speak_for_the_same_roles_and_its_streamer(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            async with (
                server_of(claude) as one,
                server_of(claude, "sh", "-c", '"$@"; exit', "wrapper") as other,
                claude.monitor(),
            ):
                await claude.until_active()
                joined = await one.call("join", room=ROOM, name="bob")
                joined_again = await other.call("join", room=ROOM, name="bob")
                await one.call("send", text="from one", to=PEER)
                await other.call("send", text="from the other", to=PEER)
                await claude.peer.send("hello", "bob")
                shown = await claude.until_shown(1)
                sent = await claude.channel.deliveries(to=PEER)
                roles = await claude.channel.roles()
    assert joined["waiter"] == joined_again["waiter"] == "active"
    assert "replaced" not in joined_again
    assert [(row["sender"], row["text"]) for row in sent] == [("bob", "from one"), ("bob", "from the other")]
    assert [text for _, text in shown] == ["hello"]
    assert roles["bob"] == claude.address
