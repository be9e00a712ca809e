"""The product's processes as a harness starts them, in a HOME of the bench's own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio
import psutil
from anyio.abc import Process
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from channel.membership import Caller
from harness_adapters.claude.addresses import claude_address
from harness_adapters.composition import open_channel
from waiters.processes import ProcessIdentity, identity_of

PYTHON = [sys.executable, "-I"]
SERVER = [*PYTHON, "-m", "harness_adapters.mcp_server"]
STREAMER = [*PYTHON, "-m", "harness_adapters.cli", "monitor", "--pace", "off"]
FLOOR_SERVER = [*PYTHON, str(Path(__file__).with_name("floor_server.py"))]
FLOOR_READER = [*PYTHON, str(Path(__file__).with_name("floor_reader.py"))]
FLOOR_READER_WITH_ANYIO = [*FLOOR_READER, "--anyio"]

ConnectMode = Literal["auto", "legacy"]
NEWEST: ConnectMode = "auto"
"""The era of 2026-07-28, which Claude Code speaks."""

LEGACY: ConnectMode = "legacy"
"""The era with `initialize`, which Codex speaks."""

CLAUDE_CODE = Implementation(name="claude-code", version="2.1.332")
ROOM = "bench"
END_S_MAX = 5.0
READ_BYTES = 65_536

# The shell is the harness's process: it waits until its note is written, and stays above what it runs.
HARNESS = ["/bin/sh", "-c", 'read -r go; "$@"; exit $?', "sh"]


class Home:
    """A HOME with the channel's file in its usual place and Claude Code's notes on its sessions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / ".agent-channel" / "channel.db"
        (root / ".claude" / "sessions").mkdir(parents=True)
        self.transcripts = root / ".claude" / "projects" / "-"
        self.transcripts.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.root), "PATH": os.defpath, "CLAUDECODE": "1"}

    def note(self, process: ProcessIdentity, session_id: str) -> Path:
        """Write Claude Code's note on a process of its own; the session's transcript, which is empty."""
        note = {"pid": process.pid, "sessionId": session_id, "cwd": "/", "procStart": str(process.start)}
        (self.root / ".claude" / "sessions" / f"{process.pid}.json").write_text(json.dumps(note))
        transcript = self.transcripts / f"{session_id}.jsonl"
        transcript.touch()
        return transcript


class Reader:
    """A process that prints, and the end of the socket that it prints to."""

    def __init__(self, harness: Process, end: socket.socket, transcript: Path | None) -> None:
        self._harness = harness
        self._end = end
        self._transcript = transcript

    @property
    def process(self) -> psutil.Process:
        """The process that prints, below the shell that stands for its harness."""
        return psutil.Process(self._harness.pid).children()[0]

    async def start(self) -> None:
        """Let it start."""
        assert self._harness.stdin is not None
        await self._harness.stdin.send(b"\n")

    async def read(self) -> str:
        """The next lines, as soon as they can be read. Raises RuntimeError when the process has ended."""
        await anyio.wait_readable(self._end)
        lines = self._end.recv(READ_BYTES)
        if not lines:
            raise RuntimeError("the process that was to print has ended")
        return lines.decode()

    def show(self, event: str) -> None:
        """Write to the transcript, as Claude Code does when it has put an event before its model."""
        assert self._transcript is not None
        text = event.rstrip("\n").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        content = (
            "<task-notification>\n<task-id>bench</task-id>\n"
            f'<summary>Monitor event: "bench"</summary>\n<event>{text}</event>\n</task-notification>'
        )
        record = {"type": "user", "message": {"role": "user", "content": content}}
        with self._transcript.open("a") as transcript:
            transcript.write(json.dumps(record, separators=(",", ":")) + "\n")


@asynccontextmanager
async def reader(
    command: Sequence[str], home: Home, session_id: str | None = None
) -> AsyncGenerator[tuple[Reader, ProcessIdentity]]:
    """A process below a harness of its own, not yet started; with the harness's identity."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        with theirs:
            harness = await anyio.open_process(
                [*HARNESS, *command], stdin=subprocess.PIPE, stdout=theirs, stderr=None, env=home.environment()
            )
        identity = identity_of(harness.pid)
        assert identity is not None
        transcript = home.note(identity, session_id) if session_id else None
        try:
            yield Reader(harness, ours, transcript), identity
        finally:
            await _end(harness)


@asynccontextmanager
async def streamer(home: Home, name: str) -> AsyncGenerator[Reader]:
    """The streamer of a session that holds the role `name`, started and past its first look."""
    async with reader(STREAMER, home, f"session-of-{name}") as (streaming, identity):
        address = await join(home, identity, f"session-of-{name}", name)
        await streaming.start()
        await until_leased(home, address)
        yield streaming


async def join(home: Home, harness: ProcessIdentity, session_id: str, name: str) -> str:
    """Hold a role as the server of a Claude Code process would; its address."""
    caller = Caller(claude_address(harness), "claude", harness.to_text(), harness.to_text(), session_id=session_id)
    async with open_channel(home.database, durable=False) as channel:
        await channel.membership.join(caller, ROOM, name, None)
    return caller.address


async def until_leased(home: Home, address: str) -> None:
    async with open_channel(home.database, durable=False) as channel:
        while not await channel.leases.is_held(address):  # noqa: ASYNC110 (another process takes it)
            await anyio.sleep(0.02)


@asynccontextmanager
async def client(command: Sequence[str], home: Home, mode: ConnectMode = NEWEST) -> AsyncGenerator[Client]:
    """The SDK's client of an MCP server that runs `command`."""
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=home.environment())
    async with Client(stdio_client(parameters), client_info=CLAUDE_CODE, mode=mode) as connected:
        yield connected


@asynccontextmanager
async def sender(home: Home, mode: ConnectMode = NEWEST) -> AsyncGenerator[Client]:
    """The client of a server of ours whose session, this process, holds the role `sender` and has a streamer."""
    own = identity_of(os.getpid())
    assert own is not None
    home.note(own, "session-of-sender")
    async with client(SERVER, home, mode) as connected, reader(STREAMER, home) as (streaming, _):
        await call(connected, "join", room=ROOM, name="sender")
        await streaming.start()
        await until_leased(home, claude_address(own))
        yield connected


async def call(connected: Client, tool: str, **arguments: object) -> None:
    """Call a tool. Raises RuntimeError if it refuses."""
    result = await connected.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(f"{tool}: {result.content}")


def processor_s(pid: int) -> float:
    """What all threads of a process have used, to the nanosecond. Linux only."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def _end(harness: Process) -> None:
    """End the harness and what it runs."""
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(harness.pid).children()
        harness.kill()  # first: a shell reports how its child ended
        for child in children:
            child.terminate()
        for left_over in psutil.wait_procs(children, END_S_MAX)[1]:
            left_over.kill()
    with anyio.CancelScope(shield=True):
        await harness.aclose()
