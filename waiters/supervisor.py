"""The waiters of one process: one task group, one bell, one lease keeper.

`hold` serves one address in the caller's task; `serve` keeps serving one in the background, whatever
happens to it. The bell and the slow look at the file exist once a first lease is wanted.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup, TaskStatus

from channel.clock import Clock, IdSource
from channel.database import Database
from channel.deliveries import Deliveries
from channel.errors import ChannelError, LeaseHeld, LeaseLost, SchemaTooNew, StoreUnavailable
from channel.leases import Leases
from channel.wakeups import Bell, bells_folder, open_bell, remove_dead_bells, wait_for_change
from waiters import status
from waiters.background import background_tasks
from waiters.delivery_loop import DeliveryLoop
from waiters.lease_keeper import LeaseKeeper
from waiters.receiver import Receiver, ReceiverEnded
from waiters.retries import BackOff

RELEASE_S_MAX = 1.0
"""A lease that can't be given back in this time runs out by itself."""

HELD_ELSEWHERE_S = 5.0
"""How often an address whose waiter is another process is looked at."""

logger = logging.getLogger(__name__)


@dataclass
class _Served:
    """An address that this process serves, or wants to; `loop` while it holds the lease."""

    first_attempt: anyio.Event
    until_idle: bool
    wanted_again: bool = False
    loop: DeliveryLoop | None = None
    trouble: str = ""


class Supervisor:
    """Starts and stops waiters. Made by `open_supervisor`."""

    def __init__(
        self,
        database: Database,
        deliveries: Deliveries,
        leases: Leases,
        clock: Clock,
        ids: IdSource,
        process: str,
        group: TaskGroup,
    ) -> None:
        self._database = database
        self._deliveries = deliveries
        self._leases = leases
        self._clock = clock
        self._ids = ids
        self._process = process
        self._keeper = LeaseKeeper(leases, clock, process)
        self._served: dict[str, _Served] = {}
        self._loops: list[DeliveryLoop] = []
        self._no_loops = anyio.Event()
        self._stopping = False
        self._bell: Bell | None = None
        self._bell_opening = anyio.Lock()
        self._group = group
        group.start_soon(self._keeper.run)

    def serve(
        self, address: str, receiver: Receiver, *, until_idle: bool = False, on_end: Callable[[], None] | None = None
    ) -> None:
        """Serve an address in the background until `stop`; again for one that is served: wake its waiter.

        `until_idle`: until nothing is to be done for it now (the address is another's, whose server is gone).
        `on_end` is called once it is served no more.
        """
        served = self._served.get(address)
        if served is not None:
            served.until_idle = served.until_idle and until_idle
            served.wanted_again = True  # its waiter may be about to end
            self.wake(address)
            return
        if self._stopping:
            return
        self._served[address] = _Served(anyio.Event(), until_idle)
        self._group.start_soon(self._serve, address, receiver, on_end)

    def serves(self, address: str) -> bool:
        return address in self._served

    def serves_for_good(self, address: str) -> bool:
        """Not only until there is nothing to do for it."""
        served = self._served.get(address)
        return served is not None and not served.until_idle

    def wake(self, address: str) -> None:
        served = self._served.get(address)
        if served is not None and served.loop is not None:
            served.loop.wake()

    async def first_attempt(self, address: str) -> str:
        """Wait until the harness of a served address was reached, or could not be; its trouble, or ""."""
        served = self._served.get(address)
        if served is None:
            return ""
        await served.first_attempt.wait()
        return served.trouble or await self._leases.detail(address)

    async def hold(self, address: str, receiver: Receiver, *, until_idle: bool = False) -> None:
        """Take the address's lease and serve it in this task, until stopped.

        Raises LeaseHeld (another process serves it), LeaseLost, ReceiverEnded, SchemaTooNew, StoreUnavailable.
        """
        bell = await self._open_bell()
        lease = await self._leases.take(address, self._process, str(bell.path))
        served = self._served.get(address)
        first_attempt = None if served is None else served.first_attempt
        loop = DeliveryLoop(lease, receiver, self._deliveries, self._leases, self._clock, first_attempt)
        lost: list[ChannelError] = []
        with anyio.CancelScope() as scope:

            def on_lost(reason: ChannelError) -> None:
                lost.append(reason)
                scope.cancel()

            self._keeper.keep(lease, on_lost)
            self._add_loop(served, loop)
            try:
                if not self._stopping:
                    await loop.run(until_idle=until_idle)
            finally:
                self._keeper.drop(lease)
                with anyio.move_on_after(RELEASE_S_MAX, shield=True), suppress(StoreUnavailable):
                    await self._leases.release(lease)
                self._remove_loop(served, loop)
        if lost:
            raise lost[0]

    async def stop(self, grace_s: float) -> None:
        """Begin nothing new; wait for what is being written, and for the leases' release, `grace_s` at most."""
        self._stopping = True
        if self._bell is not None:
            self._bell.remove()  # at once: the process may be ended before its waiters are
        for loop in self._loops:
            loop.stop()
        with anyio.move_on_after(grace_s):
            while self._loops:
                self._no_loops = anyio.Event()
                await self._no_loops.wait()

    async def _serve(self, address: str, receiver: Receiver, on_end: Callable[[], None] | None) -> None:
        served = self._served[address]
        back_off = BackOff()
        try:
            while not self._stopping:
                served.wanted_again = False
                try:
                    await self.hold(address, receiver, until_idle=served.until_idle)
                    if served.until_idle and not served.wanted_again:
                        return
                except (LeaseHeld, LeaseLost):
                    served.first_attempt.set()
                    if served.until_idle:
                        return
                    await self._wait_until_free(address)
                except ReceiverEnded:
                    return
                except SchemaTooNew as error:
                    served.trouble = f"{status.STORE_UNAVAILABLE}: {error}"
                    return
                except StoreUnavailable as error:
                    await self._fail(served, f"{status.STORE_UNAVAILABLE}: {error}", back_off)
                except Exception as error:
                    logger.exception("the waiter of %s failed", address)
                    await self._fail(served, f"{status.WAITER_FAILED}: {error!r}", back_off)
        finally:
            served.first_attempt.set()
            self._served.pop(address, None)
            if on_end is not None:
                on_end()

    async def _fail(self, served: _Served, trouble: str, back_off: BackOff) -> None:
        served.trouble = trouble
        served.first_attempt.set()
        await self._clock.sleep(back_off.after_failure_s())

    async def _wait_until_free(self, address: str) -> None:
        with suppress(StoreUnavailable):
            while await self._leases.is_held(address):
                await self._clock.sleep(HELD_ELSEWHERE_S)

    def _add_loop(self, served: _Served | None, loop: DeliveryLoop) -> None:
        self._loops.append(loop)
        if served is not None:
            served.loop = loop
            served.trouble = ""

    def _remove_loop(self, served: _Served | None, loop: DeliveryLoop) -> None:
        self._loops.remove(loop)
        if served is not None:
            served.loop = None
        if not self._loops:
            self._no_loops.set()

    async def _open_bell(self) -> Bell:
        async with self._bell_opening:
            if self._bell is None:
                self._bell = await self._group.start(self._listen)
                self._group.start_soon(self._poll)
        return self._bell

    async def _listen(self, *, task_status: TaskStatus[Bell]) -> None:
        folder = bells_folder(self._database.path)
        async with open_bell(folder, self._process, self._ids) as bell:
            task_status.started(bell)
            remove_dead_bells(folder, self._leases.is_alive)
            while True:
                await bell.wait()
                self._wake_all()

    async def _poll(self) -> None:
        seen = -1  # no version: the first look wakes everyone once
        while True:
            try:
                seen = await wait_for_change(self._database, self._clock, seen)
            except StoreUnavailable as error:
                logger.warning("the channel could not be looked at: %s", error)
            else:
                self._wake_all()

    def _wake_all(self) -> None:
        for loop in self._loops:
            loop.wake()


@asynccontextmanager
async def open_supervisor(
    database: Database, deliveries: Deliveries, leases: Leases, clock: Clock, ids: IdSource, process: str
) -> AsyncIterator[Supervisor]:
    """The waiters of this process, while the body runs; `process` is its identity."""
    async with background_tasks() as group:
        yield Supervisor(database, deliveries, leases, clock, ids, process, group)
