"""Which Codex threads this process serves: the one that calls it, and closed ones that have work.

A closed thread's own server is gone, so any server of the account takes its lease: on a send to it, at the
start, and when a look-up falls due. Its messages then wait in the thread's queue and run on `codex resume`.
"""

import logging
from collections.abc import Callable

import anyio

from channel.clock import Clock
from channel.database import Row
from channel.deliveries import Deliveries
from channel.errors import StoreBusy
from channel.membership import Membership
from harness_adapters.codex.receiver import CodexReceiver
from harness_adapters.codex.threads import Thread, thread_of
from waiters.supervisor import Supervisor
from waiters.timers import is_set_within

SCAN_S_MAX = 600.0
"""Between two looks for threads whose server died without a word; as long as the longest look interval."""

SCAN_S_MIN = 1.0
"""At least, whatever ends or falls due meanwhile."""

logger = logging.getLogger(__name__)


class Adoption:
    """Starts Codex waiters in this process. `thread_of`: how the thread of a stored connection is reached."""

    def __init__(
        self,
        membership: Membership,
        deliveries: Deliveries,
        supervisor: Supervisor,
        clock: Clock,
        thread_of: Callable[[Row], Thread] = thread_of,
    ) -> None:
        self._membership = membership
        self._deliveries = deliveries
        self._supervisor = supervisor
        self._clock = clock
        self._thread_of = thread_of
        self._look_again = anyio.Event()

    async def serve_own(self, address: str) -> None:
        """Serve the thread that calls this process, as long as this process lives, if it holds a role."""
        await self._serve(address, until_idle=False)

    async def adopt(self) -> None:
        """Serve each thread that has work and no waiter, until nothing is to be done for it; watch the others'."""
        await self._adopt_due()
        self._look_soon()

    async def run(self) -> None:
        """Adopt what is due, now, whenever a look-up falls due and after each waiter's end, for ever."""
        while True:
            self._look_again = anyio.Event()
            next_s = await self._adopt_due()
            await self._clock.sleep(SCAN_S_MIN)
            wait_s = SCAN_S_MAX if next_s is None else min(next_s, SCAN_S_MAX)
            await is_set_within(self._look_again, self._clock, wait_s)

    async def _adopt_due(self) -> float | None:
        """Seconds until another thread may be due; None: no message to a thread is open."""
        try:
            due, next_s = await self._deliveries.unserved_addresses()
            for address in due:
                await self._serve(address, until_idle=True)
        except StoreBusy as error:
            logger.warning("closed threads could not be looked for: %s", error)
            return SCAN_S_MIN
        return next_s

    async def _serve(self, address: str, *, until_idle: bool) -> None:
        connection = await self._membership.connection(address)
        channel_id = await self._membership.channel_id()
        if connection is None or connection["thread_id"] is None or channel_id is None:
            return
        try:
            thread = self._thread_of(connection)
        except ValueError as error:
            logger.warning("the thread %s can't be served: %s", connection["thread_id"], error)
            return
        receiver = CodexReceiver(thread, channel_id, self._clock)
        self._supervisor.serve(address, receiver, until_idle=until_idle, on_end=self._look_soon)

    def _look_soon(self) -> None:
        self._look_again.set()
