"""The daemon's transport against a small WebSocket server on a unix socket."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from websockets.asyncio.server import ServerConnection, unix_serve

from harness_adapters.codex import daemon
from harness_adapters.codex.daemon import open_daemon
from harness_adapters.codex.transport import NothingSent, TransportClosed, TransportUnavailable

SOON = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@asynccontextmanager
async def echo_server(path: Path) -> AsyncIterator[None]:
    """Sends each message back; `bye` makes it close."""

    async def serve(connection: ServerConnection) -> None:
        async for message in connection:
            if message == "bye":
                return
            await connection.send(message)

    async with unix_serve(serve, str(path), max_size=None):
        yield


async def test_each_line_is_one_text_frame_of_any_length(path: Path) -> None:
    with anyio.fail_after(SOON):
        async with echo_server(path), open_daemon(path) as transport:
            for line in ["short", "x" * 3 * 1024 * 1024, "\U0001f600\u2028" * 100_000]:
                await transport.send(line)
                assert await transport.receive() == line


async def test_a_link_to_the_socket_may_have_a_path_too_long_for_one(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    link = folder / "app-server-control.sock"
    link.symlink_to(path)
    with anyio.fail_after(SOON):
        async with echo_server(path), open_daemon(link) as transport:
            await transport.send("a")
            assert await transport.receive() == "a"


async def test_a_daemon_that_leaves_ends_the_lines_and_takes_no_more(path: Path) -> None:
    with anyio.fail_after(SOON):
        async with echo_server(path), open_daemon(path) as transport:
            await transport.send("bye")
            with pytest.raises(TransportClosed, match="the Codex daemon has closed the connection"):
                await transport.receive()
            with pytest.raises(NothingSent):
                await transport.send("a")


async def test_closing_may_be_repeated_and_ends_the_lines(path: Path) -> None:
    with anyio.fail_after(SOON):
        async with echo_server(path), open_daemon(path) as transport:
            await transport.aclose()
            await transport.aclose()
            with pytest.raises(TransportClosed):
                await transport.receive()


@pytest.mark.fault("F51")
@pytest.mark.parametrize("kind", ["missing", "dead", "no socket", "broken link"])
async def test_where_nobody_listens_it_is_unavailable(path: Path, kind: str) -> None:
    if kind == "dead":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "no socket":
        path.write_text("")
    elif kind == "broken link":
        path.symlink_to(path.with_name("nowhere"))
    with anyio.fail_after(SOON), pytest.raises(TransportUnavailable, match=r"can't be reached: .+"):
        async with open_daemon(path):
            pass


@pytest.mark.fault("F51")
@pytest.mark.parametrize("greeting", [b"HTTP/1.1 404 Not Found\r\n\r\n", b'{"hello":1}\n', b"", None])
async def test_a_listener_that_speaks_no_websocket_is_unavailable(
    path: Path, greeting: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None stands for one that never answers."""
    monkeypatch.setattr(daemon, "OPEN_S_MAX", 5.0 if greeting is not None else 0.1)

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            if greeting is None:
                await anyio.sleep_forever()
            elif greeting:
                await stream.send(greeting)

    with anyio.fail_after(SOON):
        async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            with pytest.raises(TransportUnavailable, match=r"can't be reached: .+"):
                async with open_daemon(path):
                    pass
            tasks.cancel_scope.cancel()


async def test_another_users_socket_is_not_spoken_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with anyio.fail_after(SOON):
        async with echo_server(path):
            with pytest.raises(TransportUnavailable, match="belongs to another user"):
                async with open_daemon(path):
                    pass
