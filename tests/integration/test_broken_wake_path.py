"""What wakes a Claude Code session breaks: the next look of either side says so, and why where that is known."""

import os
import shlex
import signal
import sysconfig
import venv
from pathlib import Path

import anyio
import pytest

from harness_adapters.callers import CLAUDE_CLIENT
from tests.another_session import ROOM
from tests.integration.claude_stand_in import ClaudeStandIn, claude_stand_in
from tests.integration.harness_stand_in import RawClient

LIMIT_S = 50
ROOT = Path(__file__).parents[2]
BOB = "bob"


def install(folder: Path) -> Path:
    """The product in an environment of its own, as `uv tool install` makes one; its Python."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "agent-channel.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    return folder / "bin" / "python"


async def join(claude: ClaudeStandIn, client: RawClient) -> dict[str, object]:
    return await client.call("join", room=ROOM, name=BOB)


@pytest.mark.fault("F11")
async def test_a_streamer_that_died_and_a_program_that_was_uninstalled_are_said_at_the_next_look(
    tmp_path: Path,
) -> None:
    python = install(tmp_path / "tool")
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path / "machine") as claude:
            server = [str(python), "-I", "-m", "harness_adapters.mcp_server", "--db", str(claude.database)]
            async with await anyio.open_process(server, env=claude.environment) as process:
                client = RawClient(process, CLAUDE_CLIENT)
                await client.begin_handshake()
                await client.finish_handshake()
                first = await join(claude, client)
                async with claude.monitor():
                    os.kill(await claude.until_active(), signal.SIGKILL)
                    await claude.channel.until_offline(claude.address)
                died = await join(claude, client)
                sent = await claude.peer.send("are you there?", BOB)
                python.unlink()
                uninstalled = await join(claude, client)
                answered = await client.call("send", text="hello", to="peer")
    assert shlex.split(str(first["command"]))[0] == str(python)
    assert died["waiter"] == "offline"
    assert died["command"] == first["command"]
    assert sent["to"][BOB]["waiter"].startswith("offline since ")
    for answer in (uninstalled, answered):
        assert answer["waiter"] == "offline"
        assert answer["waiter_detail"] == f"program gone: {python}"
        assert "command" not in answer
