"""A harness that a test can stop in the middle: raw lines to a server, and a parent process to be killed alone.

Of the parent: the test holds the other ends of the server's pipes, so its death closes none of them. It is
named `codex`, and there is no app-server behind that name: a thread is served all the same, and waits.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from channel.clock import SystemClock
from harness_adapters.callers import CODEX_CLIENT
from harness_adapters.codex.addresses import address_of
from tests.another_session import ROOM
from waiters.processes import ProcessIdentity, identity_of, is_alive, wait_ended

THREAD = "01a2-thread"
LINE_BYTES_MAX = 1_000_000

START = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"


class RawClient:
    """Speaks to a server process line by line, in the older protocol era, so that a handshake can be left undone."""

    def __init__(self, process: Process, client_name: str, meta: Mapping[str, Any] | None = None) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)
        self._client_name = client_name
        self._meta = dict(meta or {})
        self._ids = count(1)

    async def begin_handshake(self) -> None:
        """Ask, and read the answer; a slow client goes no further yet."""
        client = {"name": self._client_name, "version": "0"}
        await self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)

    async def finish_handshake(self) -> None:
        await self._send({"method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool."""
        result = await self.request("tools/call", name=tool, arguments=arguments, _meta=self._meta)
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
        await self._stdin.aclose()

    async def _send(self, message: dict[str, Any]) -> None:
        await self._stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class HarnessStandIn:
    """The parent process, the server below it, and the client that speaks to it for THREAD."""

    def __init__(self, process: Process, home: Path, server: ProcessIdentity) -> None:
        self.process = process
        self.server = server
        self.address = address_of(THREAD, (home / ".codex").resolve())
        self.client = RawClient(process, CODEX_CLIENT, {"threadId": THREAD})

    async def join(self, name: str) -> dict[str, Any]:
        """The answer of `join`, after the handshake."""
        await self.client.begin_handshake()
        await self.client.finish_handshake()
        return await self.client.call("join", room=ROOM, name=name)

    async def wait_server_ended(self) -> None:
        await wait_ended(self.server, SystemClock())


@asynccontextmanager
async def harness_stand_in(root: Path, database: Path) -> AsyncIterator[HarnessStandIn]:
    """Start the parent and the server; both are gone when the block is left."""
    codex = root / "bin" / "codex"
    codex.parent.mkdir()
    codex.symlink_to(sys.executable)
    command = [str(codex), "-I", "-S", "-c", START]
    command += server_command(database)
    environment = {"HOME": str(root), "PATH": str(codex.parent)}
    async with await anyio.open_process(command, stderr=None, env=environment) as process:
        parent, server = identity_of(process.pid), await _child_of(process.pid)
        try:
            yield HarnessStandIn(process, root, server)
        finally:
            for identity in (parent, server):
                if identity is not None and is_alive(identity):
                    with suppress(ProcessLookupError):  # it has just ended by itself
                        os.kill(identity.pid, signal.SIGKILL)


def server_command(database: Path) -> list[str]:
    """How a harness starts our server."""
    return [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(database)]


async def _child_of(pid: int) -> ProcessIdentity:
    while not (children := psutil.Process(pid).children()):  # noqa: ASYNC110 - the kernel tells nobody
        await anyio.sleep(0.01)
    identity = identity_of(children[0].pid)
    assert identity is not None
    return identity
