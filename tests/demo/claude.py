"""Claude Code as the demo plays it: the MCP server and the Monitor under one process, and a transcript.

This very process stands for Claude Code. It leaves the note that Claude Code leaves on itself, so the server and
the streamer find their session as they do in the real one, and it writes what Monitor tells into a transcript.
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from channel.clock import SystemClock
from fakes.monitor_host import MonitorHost, monitor
from fakes.monitor_rules import task_notification
from harness_adapters.claude.framing import WholeDelivery, whole_deliveries
from waiters.processes import own_identity

VERSION = "2.1.332"
PROTOCOL = "2026-07-28"
SESSION_ID = "00000000-0000-4000-8000-00000000c0de"


class ClaudeSide:
    """One Claude Code session. `events`: what Monitor told it, in order."""

    def __init__(self, client: Client, home: Path) -> None:
        self.events: list[str] = []
        self._client = client
        self._home = home
        self._transcript = home / ".claude" / "projects" / "demo" / f"{SESSION_ID}.jsonl"
        self._transcript.parent.mkdir(parents=True)
        self._transcript.touch()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One tool call; its structured answer, which is all that a model is shown."""
        result = await self._client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool} failed: {result.content}")
        return dict(result.structured_content)

    @asynccontextmanager
    async def monitoring(self, command: str) -> AsyncIterator[None]:
        """Run the command that `join` returned, as the Monitor tool does, while the body runs."""
        environment = _environment(self._home) | {"CLAUDE_CODE_CHILD_SESSION": "1"}
        async with monitor(command, clock=SystemClock(), environment=environment, cwd=self._home) as host:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, host)
                yield
                tasks.cancel_scope.cancel()

    def deliveries(self) -> list[WholeDelivery]:
        """What arrived whole, rebuilt from the events."""
        return list(whole_deliveries(line for event in self.events for line in event.split("\n")))

    async def _read(self, host: MonitorHost) -> None:
        while True:
            notification = await host.notifications.next()
            if notification.kind != "event":
                raise RuntimeError(f"Monitor says: {notification.text!r}; stderr: {host.stderr.decode()}")
            self.events.append(notification.text)
            text = task_notification("demo", "agent-channel messages", notification)
            record = {"type": "user", "message": {"role": "user", "content": text}, "sessionId": SESSION_ID}
            with self._transcript.open("a") as transcript:
                transcript.write(json.dumps(record) + "\n")


@asynccontextmanager
async def claude_session(home: Path, server: list[str]) -> AsyncIterator[ClaudeSide]:
    """A session with `server` registered, as Claude Code starts it."""
    _leave_note(home)
    parameters = StdioServerParameters(command=server[0], args=server[1:], env=_environment(home), cwd=home)
    name = Implementation(name="claude-code", version=VERSION)
    async with Client(stdio_client(parameters), client_info=name, mode=PROTOCOL) as client:
        yield ClaudeSide(client, home)


def _leave_note(home: Path) -> None:
    process = own_identity()
    note = {"pid": process.pid, "sessionId": SESSION_ID, "cwd": str(home), "version": VERSION, "status": "idle"}
    if sys.platform == "linux":
        note["procStart"] = str(process.start)
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True)
    (folder / f"{process.pid}.json").write_text(json.dumps(note))


def _environment(home: Path) -> dict[str, str]:
    """What Claude Code adds for its children, on a bare environment."""
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ID": SESSION_ID,
        "CLAUDE_PROJECT_DIR": str(home),
    }
