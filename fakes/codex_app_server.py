"""A Codex app-server that needs no Codex: runnable, honest as measured, and as nasty as a test wants.

It serves the threads of one CODEX_HOME, shared with every other fake of that home (`fakes/codex_store.py`).

As a process on stdio, as the product starts it: put it in the place of the `codex` binary,

    home = CodexHome(codex_home_path)
    thread_id = new_thread(home)
    codex = write_executable(tmp_path / "codex")      # codex app-server --disable plugins, CODEX_HOME in env
    set_faults(home, "after_effect:thread/queue/add:die")
    ...                                               # run the client under test
    assert [row.client_id for row in home.rows(thread_id)] == ["key-1"]
    assert {entry["method"] for entry in home.received()} <= ALLOWED

As the daemon with its control socket (WebSocket frames over a unix socket), in its own process
(`app-server --listen unix://`, or `unix://PATH`), or inside the test:

    async with control_socket(home) as path: ...      # app-server-control.sock in CODEX_HOME is a link to it

By hand:

    python -m fakes.codex_app_server --home DIR [--faults SPECS] [--codex-version 0.120.0] [--tick SECONDS]

Rows are consumed by the thread's owner: the test itself through `ThreadOwner` (fakes/codex_thread.py), or a
server that has the thread loaded. Faults are listed in `fakes/faults.py`, differences to the real one in
`fakes/divergences.py`.
"""

import argparse
import asyncio
import os
import shlex
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.abc
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed, ConnectionClosedError

from fakes import codex_shapes as shapes
from fakes.codex_connection import BUBBLEWRAP, Connection, log_error
from fakes.codex_shapes import Json
from fakes.codex_store import CodexHome, Thread, new_uuid
from fakes.codex_turns import LoadedThread
from fakes.codex_versions import CURRENT, VERSIONS, CodexVersion
from fakes.faults import FaultTable

TICK_S = 10.0  # measured: an idle owner notices a row of another process at most so late
LINE_BYTES_MAX = 64 * 1024 * 1024  # the largest input, escaped, is 12 MB
CONTROL_SOCKET = Path("app-server-control") / "app-server-control.sock"


class AppServer:
    """The state of one server process: who is connected, what it has loaded.

    `tick_s`: how often it looks for rows that other processes added to a thread loaded here.
    """

    def __init__(
        self,
        home: CodexHome,
        tasks: anyio.abc.TaskGroup,
        *,
        faults: str = "",
        version: CodexVersion = CURRENT,
        tick_s: float = TICK_S,
    ) -> None:
        self.home = home
        self.version = version
        self.faults = FaultTable(home, faults)
        self.originator: str | None = None
        self.loaded: dict[str, LoadedThread] = {}
        self.connections: list[Connection] = []
        self.tasks = tasks
        self._tick_s = tick_s
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._installation_id = new_uuid(home.clock.now_ms())
        log_error("codex_app_server", shapes.BUBBLEWRAP_MISSING)

    def load(self, thread_id: str) -> LoadedThread:
        """Own the thread and run its rows. Raises AlreadyOwned."""
        loaded = LoadedThread(self.home, thread_id, self.faults, self.connections)
        self.loaded[thread_id] = loaded
        self._scopes[thread_id] = anyio.CancelScope()
        self.tasks.start_soon(self._run, loaded, self._scopes[thread_id])
        return loaded

    def unload(self, thread_id: str) -> None:
        """Give the thread up, if it is loaded here."""
        if thread_id in self.loaded:
            self._scopes.pop(thread_id).cancel()
            self.loaded.pop(thread_id).owner.close()

    def thread_shape(self, thread: Thread) -> Json:
        """The thread's JSON, as this server sees it."""
        loaded = self.loaded.get(thread.id)
        status = shapes.NOT_LOADED if loaded is None else loaded.status
        return shapes.thread(self.home, thread, self.version, status, self.originator or "")

    def config_warnings(self) -> list[Json]:
        """The params of the configWarning notifications that every client gets."""
        broken = _unclosed_table(self.home.path / "config.toml")
        return [BUBBLEWRAP] if broken is None else [broken, BUBBLEWRAP]

    def remote_control(self) -> Json:
        return {
            "status": "disabled",
            "serverName": "fake",
            "installationId": self._installation_id,
            "environmentId": None,
        }

    async def _run(self, loaded: LoadedThread, scope: anyio.CancelScope) -> None:
        with scope:
            await loaded.run(self._tick_s)


def _unclosed_table(config: Path) -> Json | None:
    """The one mistake in config.toml that the fake notices: a table header without its `]`."""
    lines = config.read_text().splitlines() if config.exists() else []
    for number, line in enumerate(lines, start=1):
        if line.startswith("[") and "]" not in line:
            at = {"line": number, "column": len(line) + 1}
            return {
                "summary": "Invalid configuration; using defaults.",
                "details": f"{config}:{number}:{len(line) + 1}: unclosed table, expected `]`",
                "path": str(config),
                "range": {"start": at, "end": at},
            }
    return None


async def serve_stdio(server: AppServer) -> None:
    """Serve the one client on stdin and stdout until its input ends."""
    reader, writer = await _standard_streams()

    async def write(line: str) -> None:
        writer.write(line.encode() + b"\n")
        await writer.drain()

    connection = Connection(server, write)
    server.connections.append(connection)
    await connection.open()
    while line := await reader.readline():
        server.tasks.start_soon(connection.receive, line.decode(errors="surrogateescape"))


async def _standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def serve_websocket(
    server: AppServer, path: Path, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Serve clients on the unix socket `path`, one message a frame, until cancelled."""

    async def serve(client: ServerConnection) -> None:
        async def write(line: str) -> None:
            try:
                await client.send(line)
            except ConnectionClosed:
                pass  # the client has gone; what it was to be told is lost, as with the real one

        connection = Connection(server, write)
        server.connections.append(connection)
        await connection.open()
        with suppress(ConnectionClosedError):  # a client that is killed says no good-bye
            async for frame in client:
                line = frame if isinstance(frame, str) else frame.decode(errors="surrogateescape")
                server.tasks.start_soon(connection.receive, line)
        server.connections.remove(connection)

    async with unix_serve(serve, path, max_size=None, ping_interval=None, compression=None):
        task_status.started()
        await anyio.sleep_forever()


@asynccontextmanager
async def control_socket(
    home: CodexHome, *, faults: str = "", version: CodexVersion = CURRENT, tick_s: float = TICK_S
) -> AsyncGenerator[Path, None]:
    """A fake daemon inside the test's own process; the path that its socket really has.

    A fault that kills would kill the test: for those start a process, `app-server --listen unix://`.
    """
    with linked_socket(home) as path:
        async with anyio.create_task_group() as tasks:
            server = AppServer(home, tasks, faults=faults, version=version, tick_s=tick_s)
            await tasks.start(serve_websocket, server, path)
            yield path
            tasks.cancel_scope.cancel()


@contextmanager
def linked_socket(home: CodexHome) -> Iterator[Path]:
    """A path for the daemon's socket; the one in CODEX_HOME is a link to it, since it must be short."""
    link = home.path / CONTROL_SOCKET
    link.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="codex-daemon-") as folder:
        path = Path(folder) / "control.sock"
        link.unlink(missing_ok=True)  # left by one that was killed
        link.symlink_to(path)
        yield path
        link.unlink()


def write_executable(path: Path, *arguments: str) -> Path:
    """Write an executable to stand in for `codex`: `<path> app-server --disable plugins`, CODEX_HOME in the
    environment. `arguments` are put in front of what the caller gives, `--codex-version 0.120.0` for one.

    It needs nothing of the caller's environment but CODEX_HOME.
    """
    root = Path(__file__).resolve().parent.parent
    program = f"import sys; sys.path.insert(0, {str(root)!r}); from fakes.codex_app_server import main; main()"
    command = shlex.join([sys.executable, "-c", program, *arguments])
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fakes.codex_app_server", allow_abbrev=False)
    parser.add_argument("command", nargs="?", choices=["app-server"], help="for the shape of codex's own")
    parser.add_argument("--home", type=Path, help="the CODEX_HOME (default: the environment's, ~/.codex)")
    parser.add_argument("--faults", default="", help="see fakes/faults.py")
    parser.add_argument("--codex-version", default=CURRENT.number, choices=list(VERSIONS))
    parser.add_argument("--tick", type=float, default=TICK_S, metavar="SECONDS")
    parser.add_argument("--listen", default="stdio://", metavar="URL", help="stdio:// or unix://PATH")
    parser.add_argument("--disable", action="append", metavar="FEATURE", help="taken and ignored")
    parser.add_argument("-c", "--config", action="append", metavar="KEY=VALUE", help="taken and ignored")
    parser.add_argument("--managed-daemon", action="store_true", help="taken and ignored")
    return parser.parse_args(arguments)


def find_home(chosen: argparse.Namespace) -> CodexHome:
    """The home to serve; the process ends, as the real one does, where it is missing or can't be written."""
    given = chosen.home or os.environ.get("CODEX_HOME")
    if given is None:
        given = Path.home() / ".codex"
        given.mkdir(exist_ok=True)
    if not Path(given).is_dir():
        raise SystemExit(f'Error: CODEX_HOME points to "{given}", but that path does not exist')
    try:
        return CodexHome(Path(given))
    except (OSError, sqlite3.OperationalError) as error:
        raise SystemExit(f"Error: failed to initialize sqlite state runtime under {given}: {error}") from error


async def serve(chosen: argparse.Namespace, home: CodexHome) -> None:
    async with anyio.create_task_group() as tasks:
        server = AppServer(
            home,
            tasks,
            faults=chosen.faults,
            version=VERSIONS[chosen.codex_version],
            tick_s=chosen.tick,
        )
        kind, _, path = chosen.listen.partition("://")
        if kind == "unix" and path:
            await serve_websocket(server, Path(path))
        elif kind == "unix":
            with linked_socket(home) as short_path:
                await serve_websocket(server, short_path)
        else:
            await serve_stdio(server)
        os._exit(0)  # the input has ended: requests in flight get no answer


def main(arguments: list[str] | None = None) -> None:
    chosen = parse_arguments(arguments)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(serve, chosen, find_home(chosen))


if __name__ == "__main__":
    main()
