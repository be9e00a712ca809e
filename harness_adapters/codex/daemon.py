"""The shared app-server that the Codex terminal program starts, over its control socket.

It owns the threads of the terminals that are its clients, so what is added here starts an idle turn within
about 0.1 s. The socket speaks WebSocket, one JSON text a frame, and asks for no token: what protects it is
the account it belongs to.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from harness_adapters.codex.transport import (
    LINE_BYTES_MAX,
    NothingSent,
    TransportClosed,
    TransportUnavailable,
)

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_S_MAX = 5.0
"""A live daemon answers the handshake in milliseconds; a dead one's socket refuses at once."""
CLOSE_S_MAX = 0.5
"""For the closing handshake; then the socket is simply closed."""


@asynccontextmanager
async def open_daemon(socket_path: Path) -> AsyncIterator["DaemonTransport"]:
    """Connect to the daemon's control socket, and leave it when the body ends.

    Raises:
        TransportUnavailable: there is no socket, nobody listens, it speaks no WebSocket, or it belongs to
            another user.
    """
    # 190 ms, which only a server that has a daemon to talk to should pay.
    from websockets.asyncio.client import unix_connect
    from websockets.exceptions import WebSocketException

    try:
        # The path is a link to a short one; its own can be longer than a socket's path may be.
        path = socket_path.resolve(strict=True)
        if path.stat().st_uid != os.geteuid():
            raise TransportUnavailable(f"the Codex daemon's socket {path} belongs to another user")
        # An answer echoes the text, so the usual limit of 1 MiB is too low; a busy daemon needs no pings.
        with anyio.fail_after(OPEN_S_MAX):
            connection = await unix_connect(
                path=str(path),
                uri="ws://localhost/",
                proxy=None,
                compression=None,
                max_size=LINE_BYTES_MAX,
                ping_interval=None,
                open_timeout=None,  # its own error has another class on Python 3.10
                close_timeout=CLOSE_S_MAX,
            )
    except (OSError, WebSocketException) as error:
        raise TransportUnavailable(
            f"the Codex daemon at {socket_path} can't be reached: {str(error) or type(error).__name__}"
        ) from error
    transport = DaemonTransport(connection)
    try:
        yield transport
    finally:
        await transport.aclose()


class DaemonTransport:
    """Text frames of one WebSocket connection, a line each."""

    def __init__(self, connection: "ClientConnection") -> None:
        self._connection = connection

    async def send(self, line: str) -> None:
        from websockets.exceptions import ConnectionClosed
        from websockets.protocol import State

        if self._connection.state is not State.OPEN:
            raise NothingSent("the Codex daemon has closed the connection")
        try:
            await self._connection.send(line)
        except ConnectionClosed as error:
            raise TransportClosed(f"the Codex daemon has closed the connection ({error})") from error

    async def receive(self) -> str:
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._connection.recv(decode=True)
        except ConnectionClosed as error:
            raise TransportClosed(f"the Codex daemon has closed the connection ({error})") from error

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._connection.close()
