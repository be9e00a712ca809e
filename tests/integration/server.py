"""Our MCP server as a harness starts it: a process on stdio, spoken to through the SDK's client."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from harness_adapters.callers import CLAUDE_CLIENT

ERAS = ("auto", "legacy")
"""What the two harnesses speak: Claude Code the protocol without a handshake, Codex the one before."""


@dataclass(frozen=True)
class Refused(Exception):
    """A tool said no; its text is what the model reads."""

    text: str


class ServerClient:
    """A harness that is connected to one server process."""

    def __init__(self, client: Client, meta: Mapping[str, Any]) -> None:
        self.client = client
        self._meta = dict(meta)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer. Raises Refused."""
        result = await self.client.call_tool(tool, arguments, meta=self._meta or None)
        if result.is_error:
            (block,) = result.content
            raise Refused(block.text)
        assert result.content == [], "a harness would show the model one of two different answers"
        return dict(result.structured_content)


@asynccontextmanager
async def running_server(
    database: Path, *, era: str = "auto", client: str = CLAUDE_CLIENT, meta: Mapping[str, Any] | None = None
) -> AsyncIterator[ServerClient]:
    """A server process on `database`, in a HOME of its own beside it."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-m", "harness_adapters.mcp_server", "--db", str(database)],
        env={"HOME": str(database.parent.parent), "PATH": os.environ["PATH"]},
    )
    identity = Implementation(name=client, version="0")
    async with Client(stdio_client(parameters), client_info=identity, mode=era) as connected:
        yield ServerClient(connected, meta or {})
