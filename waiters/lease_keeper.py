"""Renewing the leases of a process, all in one statement, and ending the waiters that lost theirs."""

import logging
from collections.abc import Callable

import anyio

from channel.clock import Clock
from channel.errors import ChannelError, LeaseLost, SchemaTooNew, StoreMoved, StoreUnavailable
from channel.leases import Lease, Leases
from waiters.retries import while_busy

RENEW_S = 20
"""A third of the lease's term: two renewals may fail before anybody else may take it."""

logger = logging.getLogger(__name__)

OnLost = Callable[[ChannelError], None]


class LeaseKeeper:
    """Keeps what it is told to keep. With nothing to keep, it sleeps without a timer."""

    def __init__(self, leases: Leases, clock: Clock, process: str) -> None:
        self._leases = leases
        self._clock = clock
        self._process = process
        self._kept: dict[Lease, OnLost] = {}
        self._something_to_keep = anyio.Event()

    def keep(self, lease: Lease, on_lost: OnLost) -> None:
        """Renew `lease` until `drop`; call `on_lost` once if it can't be kept, with the reason."""
        self._kept[lease] = on_lost
        self._something_to_keep.set()

    def drop(self, lease: Lease) -> None:
        self._kept.pop(lease, None)

    async def run(self) -> None:
        """Renew for ever."""
        while True:
            if not self._kept:
                self._something_to_keep = anyio.Event()
                await self._something_to_keep.wait()
            await self._clock.sleep(RENEW_S)
            if self._kept:
                await self._renew()

    async def _renew(self) -> None:
        kept = list(self._kept)  # one that is taken meanwhile is not asked for, and is not lost
        try:
            held = await while_busy(self._clock, lambda: self._leases.renew(self._process, kept))
        except (SchemaTooNew, StoreMoved) as error:
            for lease in kept:
                self._lose(lease, error)
            return
        except StoreUnavailable as error:
            # The lease runs on for another 40 s, and every hand-over checks it in its own transaction.
            logger.warning("the leases could not be renewed: %s", error)
            return
        for lease in kept:
            if lease not in held:
                self._lose(lease, LeaseLost(lease.address))

    def _lose(self, lease: Lease, reason: ChannelError) -> None:
        on_lost = self._kept.pop(lease, None)
        if on_lost is not None:
            on_lost(reason)
