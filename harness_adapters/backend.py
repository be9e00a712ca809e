"""The channel behind the MCP server: opened beside the protocol, again after a failure, and closed in time."""

import logging
from pathlib import Path

import anyio

from channel.clock import Clock
from channel.errors import StoreBusy, StoreMoved, StoreUnavailable
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel, open_channel
from harness_adapters.tool_calls import ToolCalls

ANSWER_S_MAX = 0.06
"""At the end, an answer that is in flight is waited for this long."""

OPEN_S_MAX = 8.0
"""A call waits for the database this long, then says that it is busy; SQLite itself gives up after 5 s."""

logger = logging.getLogger(__name__)


class Backend:
    """Opens the channel once `run` runs; `calls` waits for it. `clock`: the system's, if None."""

    def __init__(self, database: Path, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock
        self._channel: Channel | None = None
        self._calls: ToolCalls | None = None
        self._error: StoreUnavailable | None = None
        self._serving = anyio.CancelScope()
        self._settled = anyio.Event()
        self._wanted = anyio.Event()

    async def run(self) -> None:
        """Keep the channel open; after a failure, try again at the next call."""
        while True:
            try:
                with anyio.CancelScope() as self._serving:
                    await self._serve()
            except StoreUnavailable as error:
                self._error = error
            except Exception:
                logger.exception("the channel failed, and is opened again at the next call")
            self._channel = self._calls = None
            self._settled.set()
            self._wanted = anyio.Event()
            await self._wanted.wait()

    async def calls(self) -> ToolCalls:
        """The tools, over an open channel. Raises StoreUnavailable."""
        await self._close_if_moved()
        if self._calls is None:
            if self._settled.is_set():
                self._error = None
                self._settled = anyio.Event()
                self._wanted.set()
            with anyio.move_on_after(OPEN_S_MAX):
                await self._settled.wait()
        if self._calls is None:
            raise self._error or StoreBusy()
        return self._calls

    async def _close_if_moved(self) -> None:
        """What is called for next is the file that is in its place now."""
        if self._calls is None or self._channel is None or not self._channel.database.is_moved():
            return
        self._error = StoreMoved(str(self._database))
        self._calls = None
        self._settled = anyio.Event()
        self._serving.cancel()
        await self._settled.wait()

    async def stop(self) -> None:
        """Begin nothing new, wait ANSWER_S_MAX at most for what is in flight, say that the waiters are gone."""
        if self._channel is not None:
            await self._channel.supervisor.stop(ANSWER_S_MAX)

    async def _serve(self) -> None:
        async with open_channel(self._database, durable=True, clock=self._clock) as channel:
            adoption = Adoption(channel.membership, channel.deliveries, channel.supervisor, channel.clock)
            self._channel = channel
            self._calls = ToolCalls(channel, adoption)
            self._settled.set()
            await adoption.run()
