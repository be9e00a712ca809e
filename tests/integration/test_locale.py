"""A machine whose locale knows no letters but ASCII: texts and names are exact all the same."""

import shlex
import sys
from pathlib import Path

import anyio
import pytest

from channel.clock import SystemClock
from fakes.monitor_host import monitor
from harness_adapters.callers import CLAUDE_CLIENT
from harness_adapters.claude.framing import decode
from tests.another_session import ROOM
from tests.integration.claude_stand_in import PEER, claude_stand_in
from tests.integration.harness_stand_in import RawClient, server_command

LIMIT_S = 40
POSIX = {"LC_ALL": "C", "LANG": "C"}
TEXT = "ünïcode 漢字 👨\u200d👩\u200d👧\n\u202eright to left\u200f"
NAME = "ärger-漢"


@pytest.mark.fault("F44")
async def test_server_streamer_and_command_are_exact_under_the_locale_c(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            environment = {**claude.environment, **POSIX}
            command = server_command(claude.database)
            async with await anyio.open_process(command, env=environment) as server:
                client = RawClient(server, CLAUDE_CLIENT)
                await client.begin_handshake()
                await client.finish_handshake()
                joined = await client.call("join", room=ROOM, name=NAME)
                await client.call("send", text=TEXT, to=PEER)
                sent = await claude.peer.send(TEXT, NAME)
                async with monitor(joined["command"], clock=SystemClock(), environment=environment) as host:
                    shown = decode((await host.next_event()).split("\n"))
            words = [sys.executable, "-I", "-m", "harness_adapters.cli", "--db", str(claude.database)]
            printed = await anyio.run_process([*words, "message", str(sent["id"])], env=environment)
            (stored,) = await claude.channel.deliveries(to=PEER)
    assert shlex.split(joined["command"])[0] == sys.executable
    assert (joined["name"], stored["sender"], stored["text"]) == (NAME, NAME, TEXT)
    assert shown[1] == TEXT
    assert printed.stdout.decode() == TEXT
