"""What the programs that play a harness share: orders on stdin, our server as a child, started again when it dies.

An order is a line `{"tool": ..., "arguments": ...}`; its answer is a line `{"answer": ...}`, `{"error": ...}` or `{}`
where the server died or is not there yet. The end of stdin ends the program.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from tests.integration.server import Refused, ServerClient, running_server

RESTART_S = 0.2
"""Before a server that died is started again."""

ERA = "legacy"


class Server:
    """Our MCP server, one process after another. Made by `serving`."""

    def __init__(self, database: Path, client: str, meta: Mapping[str, Any] | None) -> None:
        self._database = database
        self._name = client
        self._meta = meta
        self._client: ServerClient | None = None
        self._ended = anyio.Event()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The line to answer with."""
        if self._client is None:
            return {}
        try:
            return {"answer": await self._client.call(tool, **arguments)}
        except Refused as refused:
            return {"error": refused.text}
        except Exception:  # whatever the SDK makes of a server that dies
            self._ended.set()
            return {}

    async def run(self) -> None:
        """Keep one running."""
        while True:
            self._ended = anyio.Event()
            try:
                async with running_server(self._database, era=ERA, client=self._name, meta=self._meta) as client:
                    self._client = client
                    await self._watch(client)
            except Exception as error:
                print(f"the server ended: {error!r}", file=sys.stderr)
            self._client = None
            await anyio.sleep(RESTART_S)

    async def _watch(self, client: ServerClient) -> None:
        """Until it does not answer any more: a harness notices it at the end of its stdout."""
        while not self._ended.is_set():
            with anyio.move_on_after(1.0):
                await self._ended.wait()
            await client.client.list_tools()


@asynccontextmanager
async def serving(
    database: Path, client: str, meta: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[Server, TaskGroup]]:
    """A server that is kept running while the body runs, and a task group for what else the session does."""
    async with anyio.create_task_group() as tasks:
        server = Server(database, client, meta)
        tasks.start_soon(server.run)
        yield server, tasks
        tasks.cancel_scope.cancel()


async def take_orders(server: Server) -> None:
    """Until stdin ends."""
    async with await anyio.open_file(sys.stdin.fileno(), closefd=False) as orders:
        async for line in orders:
            order = json.loads(line)
            print(json.dumps(await server.call(order["tool"], order["arguments"])), flush=True)


def call_this_process(name: str) -> None:
    """As the product finds it: it passes over launchers, of which an interpreter is one."""
    Path("/proc/self/comm").write_text(name)
