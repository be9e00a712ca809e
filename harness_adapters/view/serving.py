"""The view on a port of 127.0.0.1, from the first byte to a clean end."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from channel.clock import IdSource
from channel.errors import ChannelError
from harness_adapters.composition import open_channel
from harness_adapters.view.app import view_app
from harness_adapters.view.feed import Feed
from harness_adapters.view.snapshots import Snapshots
from waiters.background import background_tasks

HOST = "127.0.0.1"
"""No other interface, whatever is asked for: what is shown is the account's."""

CONNECTIONS_MAX = 64
"""A browser opens six to one host; there are a few pages."""

STOP_S_MAX = 2
"""An answer that is under way at the end is waited for this long."""


class PortTaken(ChannelError):
    """Nothing was served."""

    def __init__(self, port: int, why: str) -> None:
        super().__init__(f"Port {port} of {HOST} can't be listened to: {why}. Name another with --port, or none.")


async def serve(database: Path, port: int, announce: Callable[[str], None]) -> signal.Signals:
    """Serve until a signal comes; which it was. `port`: 0 for any that is free.

    `announce` is called with the page's address, the token in it, once it can be opened.
    Raises StoreUnavailable, PortTaken.
    """
    async with open_channel(database, durable=True, create=False) as channel:
        with _listening(port) as listener:
            port = listener.getsockname()[1]
            token = new_token(channel.ids)
            snapshots = Snapshots(channel)
            feed = Feed(channel, snapshots)
            server = _Server(view_app(channel, feed, snapshots, token, port))
            received = [signal.SIGINT]
            async with background_tasks() as tasks:
                tasks.start_soon(_end_at_signal, server, feed, received)
                tasks.start_soon(_announced, server, announce, f"http://{HOST}:{port}/#{token}")
                await server.serve([listener])
            return received[-1]


def new_token(ids: IdSource) -> str:
    """128 random bits."""
    return ids.new_id() + ids.new_id()


class _Connection(H11Protocol):
    """One of CONNECTIONS_MAX: one without a request under way makes room for a new one, the oldest first.

    Any account of the machine can connect, and needs no token to say nothing: it must not keep the page out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = self.loop.time()
        if len(self.connections) > CONNECTIONS_MAX:
            idle = [each for each in self.connections if isinstance(each, _Connection) and each._is_idle()]
            oldest = min(idle, key=lambda each: each._made_at)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers, and without its ten wake-ups a second."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                backlog=CONNECTIONS_MAX,  # so many are accepted at once, before any makes room
                timeout_graceful_shutdown=STOP_S_MAX,
            )
        )
        self.is_listening = anyio.Event()
        self._ended = anyio.Event()

    def end(self) -> None:
        self._ended.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.is_listening.set()
        await self._ended.wait()


@contextmanager
def _listening(port: int) -> Iterator[socket]:
    with socket() as listener:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise PortTaken(port, error.strerror or str(error)) from error
        yield listener


async def _announced(server: _Server, announce: Callable[[str], None], address: str) -> None:
    await server.is_listening.wait()
    announce(address)


async def _end_at_signal(server: _Server, feed: Feed, received: list[signal.Signals]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for which in signals:
            received.append(which)
            feed.end()
            server.end()
