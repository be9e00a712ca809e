"""One channel, one Claude Code session and one Codex thread, around which processes of the product die.

The test's own process plays the harnesses and sends: it serves nobody, so every delivery is the work of a
process that can be killed.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from channel.clock import SystemClock
from channel.database import Row
from channel.membership import Caller
from fakes.codex_app_server import write_executable
from fakes.codex_store import CodexHome
from fakes.codex_thread import ThreadOwner, new_thread
from fakes.monitor_host import MonitorHost, monitor
from harness_adapters.callers import CODEX_CLIENT, OTHER_HARNESS
from harness_adapters.claude.addresses import keyed_address
from tests.another_session import LOOK_S, ROOM, ChannelView, open_view
from tests.codex_sessions import thread_caller
from tests.crash.faults import Trace
from tests.crash.hurry import CommonClock
from tests.crash.zygote import Zygote
from tests.integration.claude_stand_in import ClaudeStandIn
from waiters.processes import ProcessIdentity, identity_of, is_alive, wait_ended

TIMES = 10.0
"""How much faster the rules' time passes: an uncertain delivery is looked for after 1 s, a lease lasts 6 s."""

Take = Callable[[MonitorHost], Awaitable[None]]

SENDER, CLAUDE_ROLE, CODEX_ROLE = "sender", "claude", "codex"

READ_BYTES = 65_536

OWNER = f"#!{sys.executable} -I\nimport subprocess, sys\nsys.exit(subprocess.call(sys.argv[1:]))\n"
"""A program whose name is that of its file."""

_STATES = """
SELECT d.delivery_id, d.message_id, d.state, d.absent_since_ms, d.policy, d.detail, r.name AS recipient, c.harness
FROM deliveries d JOIN roles r ON r.role_id = d.role_id JOIN connections c ON c.connection_id = r.connection_id
ORDER BY d.message_id, d.delivery_id
"""


class ServerProcess:
    """A server, spoken to line by line in the older era of the protocol.

    `thread`: the Codex thread that calls it; None: another harness.
    """

    def __init__(
        self, identity: ProcessIdentity, stream: socket.socket, trace: Trace, thread: str | None = None
    ) -> None:
        self.identity = identity
        self.trace = trace
        self._client = "a-test" if thread is None else CODEX_CLIENT
        self._meta = {} if thread is None else {"threadId": thread}
        stream.setblocking(False)
        self._stream = stream
        self._read = b""
        self._last_id = 0

    @property
    def lives(self) -> bool:
        return bool(is_alive(self.identity))

    async def handshake(self) -> None:
        """One that died over it is no matter: the next call says so."""
        client = {"name": self._client, "version": "0"}
        await self._ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        with suppress(ConnectionError):
            await self._write({"method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """The structured answer of a tool; None where the server died before it answered."""
        result = await self._ask("tools/call", name=tool, arguments=arguments, _meta=self._meta)
        if result is None:
            return None
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {result}")
        return dict(result["structuredContent"])

    async def end(self) -> None:
        """As a harness ends it, in order; one that is dead already is no matter."""
        with suppress(ProcessLookupError):
            if self.lives:
                os.kill(self.identity.pid, signal.SIGCONT)
                os.kill(self.identity.pid, signal.SIGTERM)
        await self.wait_ended()

    async def wait_ended(self) -> None:
        await wait_ended(self.identity, SystemClock())

    async def _ask(self, method: str, **params: Any) -> dict[str, Any] | None:
        self._last_id += 1
        try:
            await self._write({"id": self._last_id, "method": method, "params": params})
            while (message := await self._next_message()) is not None:
                if message.get("id") == self._last_id:
                    return dict(message["result"])
        except ConnectionError:
            pass
        return None

    async def _write(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while data:
            await anyio.wait_writable(self._stream)
            data = data[self._stream.send(data) :]

    async def _next_message(self) -> dict[str, Any] | None:
        while b"\n" not in self._read:
            await anyio.wait_readable(self._stream)
            data = self._stream.recv(READ_BYTES)
            if not data:
                return None
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))


@dataclass
class World:
    """`texts`: of each message that was stored for sure; `owed`: its recipients."""

    root: Path
    clock: CommonClock
    view: ChannelView
    claude: ClaudeStandIn
    home: CodexHome
    codex: Path
    thread: str
    zygote: Zygote
    texts: dict[int, str] = field(default_factory=dict)
    owed: dict[int, set[str]] = field(default_factory=dict)
    traces: list[Trace] = field(default_factory=list)
    """Of each process that was started, in order."""

    @property
    def database(self) -> Path:
        return self.view.channel.database.path

    @property
    def thread_caller(self) -> Caller:
        """The thread as its last tool call left it: whatever ran it has ended."""
        return thread_caller(self.view.channel.process.to_text(), self.thread, self.home.path, self.codex)

    # --- what is sent and how it stands ---

    async def send(self, text: str, *to: str) -> int:
        """Send as a server does, without serving anybody."""
        sent = await self.view.channel.sending.send(keyed_address(SENDER), text, list(to), None)
        self.owe(sent.message_id, text, to)
        return sent.message_id

    def owe(self, message_id: int, text: str, to: Sequence[str]) -> None:
        """The sender was told that this is stored."""
        self.texts[message_id] = text
        self.owed[message_id] = set(to)

    async def rows(self) -> list[Row]:
        return await self.view.channel.database.read(_STATES)

    async def until(self, holds: Callable[[Sequence[Row]], bool], over: Callable[[], bool] = lambda: False) -> bool:
        """Wait until it holds of the deliveries: True; or until `over`: False."""
        while not over():
            if holds(await self.rows()):
                return True
            await anyio.sleep(LOOK_S)
        return False

    # --- processes ---

    @asynccontextmanager
    async def server(self, fault: str = "") -> AsyncIterator[ServerProcess]:
        """A server of some session of the account; whatever becomes of it, it is gone at the end."""
        ours, its = socket.socketpair()
        trace, arguments = self._arguments(fault)
        with ours:
            with its:
                identity = await self.zygote.start(
                    [*arguments, "server", "--db", str(self.database)], self._environment, its.fileno()
                )
            async with _ended_at_last(ServerProcess(identity, ours, trace)) as process:
                yield process

    @asynccontextmanager
    async def own_server(self, fault: str = "") -> AsyncIterator[ServerProcess]:
        """The server that the thread's own Codex starts: a child of a program of that name."""
        ours, its = socket.socketpair()
        trace, arguments = self._arguments(fault)
        owner = self.root / "owner" / "codex"
        owner.parent.mkdir(exist_ok=True)
        owner.write_text(OWNER)
        owner.chmod(0o700)
        server = [sys.executable, "-I", "-m", "tests.crash.faulted", *arguments, "server", "--db", str(self.database)]
        with ours:
            with its:
                process = await anyio.open_process(
                    [str(owner), *server], stdin=its, stdout=its, stderr=None, env=self._environment
                )
            while trace.pid is None:  # noqa: ASYNC110 - it is no child of the test's
                await anyio.sleep(LOOK_S)
            identity = identity_of(trace.pid)
            assert identity is not None
            async with _ended_at_last(ServerProcess(identity, ours, trace, self.thread)) as server_process:
                yield server_process
            await process.wait()

    @asynccontextmanager
    async def streamer(
        self, fault: str = "", session: str | None = None, take: "Take | None" = None
    ) -> AsyncIterator["Streamer"]:
        """The command of `join` in a Monitor of the Claude session, or of the session with this key.

        `take`: who is told what the Monitor tells its session; None: the Claude session.
        """
        trace, arguments = self._arguments(fault)
        words = [sys.executable, "-I", "-m", "tests.crash.faulted", *arguments, "monitor", "--db", str(self.database)]
        words += ["--session", session] if session is not None else []
        async with monitor(
            " ".join(f"'{word}'" for word in words), clock=self.clock, environment=self.claude.environment
        ) as host:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take or self.claude.take_notifications, host)
                streamer = Streamer(host, trace)
                tasks.start_soon(streamer.watch)
                yield streamer
                tasks.cancel_scope.cancel()

    def run_rows(self) -> None:
        """If anything waits in the thread's queue it is resumed, runs all of it, and is closed again."""
        if not self.home.rows(self.thread):
            return
        with ThreadOwner(self.home, self.thread) as owner:
            while owner.run_row() is not None:
                pass

    @property
    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.root), "PATH": f"{self.codex.parent}:{os.environ['PATH']}"}

    def _arguments(self, fault: str) -> tuple[Trace, list[str]]:
        trace = Trace(self.root / f"trace-{len(self.traces)}")
        self.traces.append(trace)
        arguments = ["--trace", str(trace.path), "--clock", self.clock.to_text()]
        return trace, [*arguments, *(("--fault", fault) if fault else ())]

    # --- the truth ---

    def queued_keys(self) -> list[str]:
        return [row.client_id for row in self.home.rows(self.thread)]

    def item_keys(self) -> list[str]:
        return [key for item in self.home.items(self.thread) if (key := item.body.get("clientId"))]

    def texts_in_thread(self) -> list[tuple[str, str]]:
        """Key and text of all that was added."""
        queued = [(row.client_id, row.input[0]["text"]) for row in self.home.rows(self.thread)]
        bodies = [item.body for item in self.home.items(self.thread) if item.body.get("clientId")]
        return [*queued, *((body["clientId"], body["content"][0]["text"]) for body in bodies)]


@asynccontextmanager
async def _ended_at_last(process: ServerProcess) -> AsyncIterator[ServerProcess]:
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()


class Streamer:
    """A streamer in its Monitor."""

    def __init__(self, host: MonitorHost, trace: Trace) -> None:
        self.host = host
        self.trace = trace
        self.ended = False

    async def end(self) -> None:
        """By SIGTERM to it alone: in order, however long that takes."""
        while not self.ended and self.trace.pid is None:  # noqa: ASYNC110 - it tells nobody
            await anyio.sleep(LOOK_S)
        pid = self.trace.pid
        if not self.ended and pid is not None:
            with suppress(ProcessLookupError):  # it died just now
                os.kill(pid, signal.SIGTERM)
        await self.host.wait_ended()

    async def watch(self) -> None:
        await self.host.wait_ended()
        self.ended = True


@asynccontextmanager
async def crash_world(
    root: Path, starter: Zygote, codex_side: tuple[Path, Path, str] | None = None
) -> AsyncIterator[World]:
    """A room with SENDER (this process), CLAUDE_ROLE (a session with no streamer) and CODEX_ROLE (a closed thread).

    `codex_side`: binary, CODEX_HOME and thread of a real Codex; None: the fakes.
    """
    root.mkdir(parents=True)
    codex, codex_home, thread = codex_side or _fake_codex(root)
    home, clock = CodexHome(codex_home), CommonClock.beginning_now(TIMES)
    async with open_view(root / "channel" / "channel.db", clock) as view:
        world = World(root, clock, view, ClaudeStandIn(root, view), home, codex, thread, starter)
        own = view.channel.process.to_text()
        for caller, name in (
            (Caller(keyed_address(SENDER), OTHER_HARNESS, own, own), SENDER),
            (world.thread_caller, CODEX_ROLE),
        ):
            await view.channel.membership.join(caller, ROOM, name, None)
        await world.claude.join(CLAUDE_ROLE)
        yield world
    home.close()


def _fake_codex(root: Path) -> tuple[Path, Path, str]:
    codex, codex_home = root / "bin" / "codex", root / ".codex"
    codex.parent.mkdir()
    codex_home.mkdir()
    home = CodexHome(codex_home)
    thread = new_thread(home)
    home.close()
    return write_executable(codex), codex_home, thread
