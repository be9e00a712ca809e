"""Ways to run the real Codex in a test, offline: as an app-server, in a terminal, as `codex exec`.

    async with codex_home(tmp_path) as home, serve_responses_api() as api:
        home.configure(api.url, {"probe": home.probe()})
        async with app_server(home) as owner:
            thread = await owner.start_thread(home.project)
            await owner.run_turn(thread, "hello")
        async with codex_terminal(home, "resume", thread) as user:
            ...

Each runner ends its own process when its context is left; `codex_home` ends the rest (the shared daemon,
its updater, MCP servers), also after a failing test.
"""

import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed

from tests.real.codex_client import AppServer, connected
from tests.real.codex_home import POLL_S, CodexHome
from tests.real.terminal import Terminal, terminal

LINE_BYTES_MAX = 64 * 1024 * 1024  # an item list with texts of a megabyte each
EXIT_S = 5


@asynccontextmanager
async def app_server(home: CodexHome) -> AsyncGenerator[AppServer]:
    """A `codex app-server` child over stdio; it owns the threads that it starts or resumes."""
    command = [str(home.binary), "app-server"]
    stderr = home.temporary / "app-server.stderr"
    with stderr.open("ab") as stderr_file:
        process = await anyio.open_process(command, env=home.environment(), cwd=home.project, stderr=stderr_file)
    assert process.stdin is not None
    stdin = process.stdin

    async def send_line(line: str) -> None:
        await stdin.send(line.encode() + b"\n")

    try:
        async with connected(send_line, _lines(process), process.pid) as server:
            yield server
    finally:
        await _end(process)


@asynccontextmanager
async def daemon_client(home: CodexHome) -> AsyncGenerator[AppServer]:
    """A connection to the control socket of the daemon that a terminal session started."""
    async with unix_connect(
        str(home.control_socket.resolve()), uri="ws://localhost/", max_size=None, ping_interval=None, compression=None
    ) as socket:
        async with connected(socket.send, _frames(socket)) as server:
            yield server


def codex_terminal(home: CodexHome, *arguments: str) -> AbstractAsyncContextManager[Terminal]:
    """The terminal program: plain (it starts the shared daemon), `--no-daemon`, `resume ID`, a prompt."""
    return terminal([home.binary, *arguments], env=home.environment(), cwd=home.project)


@asynccontextmanager
async def codex_exec(home: CodexHome, *arguments: str) -> AsyncGenerator[Process]:
    """`codex exec PROMPT` or `codex exec resume ID PROMPT`, running; `await process.wait()` for its end."""
    command = [str(home.binary), "exec", "--skip-git-repo-check", *arguments]
    output = home.temporary / "exec.output"
    with output.open("ab") as output_file:
        process = await anyio.open_process(
            command,
            env=home.environment(),
            cwd=home.project,
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=output_file,
        )
    try:
        yield process
    finally:
        await _end(process)


async def wait_for_daemon(home: CodexHome) -> None:
    """Wait until the shared daemon accepts connections."""
    while True:
        with suppress(OSError):
            async with await anyio.connect_unix(home.control_socket.resolve()):
                return
        await anyio.sleep(POLL_S)


async def _frames(socket: ClientConnection) -> AsyncIterator[str | bytes]:
    with suppress(ConnectionClosed):  # the daemon was killed; a normal close ends the loop by itself
        async for frame in socket:
            yield frame


async def _lines(process: Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
        while True:
            yield await stream.receive_until(b"\n", LINE_BYTES_MAX)


async def _end(process: Process) -> None:
    """Close its stdin, wait, kill: whatever happened to the test."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        else:
            with suppress(ProcessLookupError):
                process.terminate()
        with anyio.move_on_after(EXIT_S):
            await process.wait()
        with suppress(ProcessLookupError):
            process.kill()
        await process.aclose()
