"""A process that starts our MCP server as Codex does, and that a test can kill alone.

The test holds the other ends of the server's pipes, so the death of this process closes none of them. It is
named `codex`, and there is no app-server behind that name: a thread is served all the same, and waits.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from channel.clock import SystemClock
from harness_adapters.callers import CODEX_CLIENT
from harness_adapters.codex.threads import address_of
from waiters.processes import ProcessIdentity, identity_of, is_alive, wait_ended

THREAD = "01a2-thread"
LINE_BYTES_MAX = 1_000_000

START = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"


class HarnessStandIn:
    """The parent process, the server below it, and the raw lines between the server and the test."""

    def __init__(self, process: Process, home: Path, server: ProcessIdentity) -> None:
        assert process.stdout is not None
        self.process = process
        self.server = server
        self.address = address_of(THREAD, (home / ".codex").resolve())
        self._ids = count(1)
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def shake_hands(self) -> None:
        """As Codex does."""
        client = {"name": CODEX_CLIENT, "version": "0.171.0"}
        await self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        await self._send({"method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool, called by THREAD."""
        result = await self.request("tools/call", name=tool, arguments=arguments, _meta={"threadId": THREAD})
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        await self._send({"id": number, "method": method, "params": params})
        while True:
            message = json.loads(await self._lines.receive_until(b"\n", LINE_BYTES_MAX))
            if message.get("id") == number:
                return dict(message["result"])

    async def close_input(self) -> None:
        """The server's stdin ends."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def wait_server_ended(self) -> None:
        await wait_ended(self.server, SystemClock())

    async def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@asynccontextmanager
async def harness_stand_in(root: Path, database: Path) -> AsyncIterator[HarnessStandIn]:
    """Start the parent and the server; both are gone when the block is left."""
    codex = root / "bin" / "codex"
    codex.parent.mkdir()
    codex.symlink_to(sys.executable)
    command = [str(codex), "-I", "-S", "-c", START]
    command += [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(database)]
    environment = {"HOME": str(root), "PATH": str(codex.parent)}
    async with await anyio.open_process(command, stderr=None, env=environment) as process:
        parent, server = identity_of(process.pid), await _child_of(process.pid)
        try:
            yield HarnessStandIn(process, root, server)
        finally:
            for identity in (parent, server):
                if identity is not None and is_alive(identity):
                    os.kill(identity.pid, signal.SIGKILL)


async def _child_of(pid: int) -> ProcessIdentity:
    while not (children := psutil.Process(pid).children()):  # noqa: ASYNC110 - the kernel tells nobody
        await anyio.sleep(0.01)
    identity = identity_of(children[0].pid)
    assert identity is not None
    return identity
