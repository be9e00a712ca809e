"""The sessions of a soak as its driver sees them: programs that are started, asked to call a tool, killed, started."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

SERVER_MODULE = "harness_adapters.mcp_server"
LINE_BYTES_MAX = 4_000_000
CALL_S_MAX = 20.0
"""The tools give up a locked database after 8 s."""

RESUMED_AFTER_S_MAX = 3.0
LOOK_S = 0.5


class Player:
    """One session, `name` in every room; its process is another one after each kill."""

    def __init__(self, name: str, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path):
        self.name = name
        self.process: Process | None = None
        self._command = [sys.executable, "-m", f"tests.soak.{module}", *arguments]
        self._environment = dict(environment)
        self._log = log
        self._lines: BufferedByteReceiveStream | None = None
        self._turn = anyio.Lock()

    @property
    def pid(self) -> int:
        """Of its newest process."""
        assert self.process is not None
        return self.process.pid

    async def run(self) -> None:
        """Keep it running; a killed one is resumed after a while."""
        while True:
            with self._log.open("ab") as log:
                self.process = await anyio.open_process(
                    self._command, stdin=subprocess.PIPE, stderr=log, env=self._environment
                )
            assert self.process.stdout is not None
            self._lines = BufferedByteReceiveStream(self.process.stdout)
            try:
                await self.process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(self.process)
            await anyio.sleep(random.uniform(0, RESUMED_AFTER_S_MAX))

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """`answer` or `error` of the tool; None where none came, and whether it was done is unknown."""
        async with self._turn:
            process, lines = self.process, self._lines
            if process is None or process.stdin is None or lines is None:
                return None
            order = json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n"
            with (
                anyio.move_on_after(CALL_S_MAX, shield=True),
                suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead),
            ):
                await process.stdin.send(order)
                return dict(json.loads(await lines.receive_until(b"\n", LINE_BYTES_MAX)))
        # An answer that comes later would be taken for that to the next order.
        with suppress(ProcessLookupError):
            process.kill()
        return None

    async def until_called(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer, asked for until there is one; only of what may be repeated."""
        while True:
            said = await self.call(tool, **arguments) or {}
            if "answer" in said:
                return dict(said["answer"])
            await anyio.sleep(LOOK_S)


@dataclass(frozen=True)
class Victim:
    """A process that may be killed."""

    kind: str
    process: psutil.Process

    def send(self, number: signal.Signals) -> None:
        with suppress(psutil.NoSuchProcess):
            self.process.send_signal(number)


def victims(players: Sequence[Player], root: Path) -> list[Victim]:
    """All processes of the soak but its driver."""
    sessions = {player.process.pid: player for player in players if player.process is not None}
    return [Victim(kind, each) for each in processes_of(root) if (kind := _kind(each, sessions)) is not None]


def processes_of(root: Path) -> list[psutil.Process]:
    """Everything below `root` as HOME, however far from its parents it has come."""
    return [each for each in psutil.process_iter() if each.pid != os.getpid() and _home(each) == str(root)]


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _kind(process: psutil.Process, sessions: Mapping[int, Player]) -> str | None:
    if process.pid in sessions:
        return sessions[process.pid].name.rstrip("0123456789-")
    words = words_of(process)
    if SERVER_MODULE in words:
        return "server"
    if "monitor" in words and "harness_adapters.cli" in words:
        return "streamer"
    if any("fakes.codex_app_server" in word for word in words):
        return "daemon" if "--listen" in words else "app-server child"
    return None


def _home(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except psutil.Error:
        return None


async def _end(process: Process) -> None:
    """Its input ends, and so does it; what it leaves is looked for afterwards."""
    if process.returncode is None:
        if process.stdin is not None:
            await process.stdin.aclose()
        with anyio.move_on_after(5):
            await process.wait()
    await process.aclose()
