"""The port between a waiter and a harness.

A `Receiver` is opened as an `OpenReceiver`: a way to the harness that is open and ready to be written to *before* a
hand-over is recorded. The delivery loop drives it; an adapter implements it; `fakes/receiver.py` is one
for tests.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from channel.delivery_states import Policy
from channel.messages import HandOver, OpenDelivery, Outcome, PendingDelivery


class Unavailable(Exception):
    """The harness can't be reached now; nothing was written. The receiver is closed, and opened again later.

    `detail`: why, in the words of `waiters/status.py`.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


class NotNow(Unavailable):
    """The harness is there but takes no message now (its queue is full, its thread archived ...).

    It stays open, look-ups go on, and the next hand-over waits.
    """


class ReceiverEnded(Exception):
    """The harness is gone for good (its pipe is dead): the waiter ends."""


class Waiter(Protocol):
    """What a receiver may ask of its waiter."""

    async def say(self, trouble: str) -> None:
        """Tell others how it goes, in the words of `waiters/status.py`; "" when all is well."""
        ...

    async def record(self, *outcomes: Outcome) -> None:
        """Record what became of deliveries, in one transaction."""
        ...

    async def check_lease(self) -> None:
        """Raises LeaseLost if another process is the waiter now: then not one byte more is written."""
        ...

    def wake(self) -> None:
        """Late outcomes wait to be fetched."""
        ...

    @property
    def is_stopping(self) -> bool:
        """Finish what is being written, begin nothing."""
        ...


class OpenReceiver(Protocol):
    """An open way to the harness. Used by one task at a time."""

    @property
    def remark(self) -> str:
        """Something lasting that a person should know of though all works, in the words of `status.py`; or ""."""
        ...

    async def ready(self) -> None:
        """Return when a hand-over may be recorded now. Raises NotNow, Unavailable, ReceiverEnded."""
        ...

    def prepare(self, pending: Sequence[PendingDelivery]) -> list[HandOver]:
        """Render the first deliveries of `pending`, as many as go out at once (at least one).

        What was rendered is kept until `hand_over`.
        """
        ...

    async def hand_over(self, delivery_ids: Collection[int]) -> None:
        """Write what was prepared, of these ids only, in order; record an outcome of each as it is known.

        Never repeats a write. A delivery without an outcome stays handed over, and is looked for.
        Raises Unavailable, ReceiverEnded, LeaseLost.
        """
        ...

    async def look_for(self, open_deliveries: Sequence[OpenDelivery]) -> list[Outcome]:
        """Look for deliveries where the harness keeps them; reads only. Raises Unavailable.

        Some, never all, may be withdrawn: they are to be found if that costs nothing.
        """
        ...

    def late_outcomes(self) -> list[Outcome]:
        """Answers that came after they were given up; each is returned once."""
        ...


class Receiver(Protocol):
    """One address's harness."""

    @property
    def policy(self) -> Policy:
        """The table that rules its deliveries."""
        ...

    @property
    def closes_after_s(self) -> float | None:
        """How long it is kept open without work; None: as long as the waiter runs."""
        ...

    def open(self, waiter: Waiter) -> AbstractAsyncContextManager[OpenReceiver]:
        """The way, ready to be written to. Raises Unavailable, ReceiverEnded."""
        ...
