"""Time and ids that a test moves by hand: the `Clock` and `IdSource` of `channel/clock.py`.

    clock = FakeClock()
    tasks.start_soon(waiter_that_sleeps_20_s)
    await clock.until_asleep(20)    # the task has come to its sleep
    clock.advance(20)               # it wakes

Nothing here waits for real time: a schedule of hours runs in milliseconds, and runs the same each time.
"""

import heapq
from itertools import count

import anyio

WALL_START_MS = 1_800_000_000_000
"""In the year 2027: no test may hold only because the true date was near."""

MONOTONIC_START_S = 10_000.0

ROUNDING_S = 1e-6
"""Sums of fractions of seconds are not exact: a sleeper so near its time wakes."""


class FakeClock:
    """A clock that stands still until `advance`. The wall clock can be set apart from the monotonic one."""

    def __init__(self) -> None:
        self._wall_ms = WALL_START_MS
        self._monotonic_s = MONOTONIC_START_S
        self._order = count()
        self._asleep: list[tuple[float, int, anyio.Event]] = []
        self._new_sleeper = anyio.Event()

    def now_ms(self) -> int:
        """The wall clock, in milliseconds since 1970."""
        return self._wall_ms

    def monotonic(self) -> float:
        """Seconds; moved by `advance` only."""
        return self._monotonic_s

    def set_wall_ms(self, now_ms: int) -> None:
        """Set the wall clock, as a user or NTP does; `monotonic` and the sleepers do not notice."""
        self._wall_ms = now_ms

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move, and the sleepers whose time has come wake, the earliest first.

        They run when the caller next waits. One that sleeps again counts from the new time.
        """
        if seconds < 0:
            raise ValueError("time does not go back; set_wall_ms sets the wall clock back")
        self._monotonic_s += seconds
        self._wall_ms += round(seconds * 1_000)
        while self._asleep and self._asleep[0][0] <= self._monotonic_s + ROUNDING_S:
            heapq.heappop(self._asleep)[2].set()

    async def sleep(self, seconds: float) -> None:
        """Return once `advance` has moved the time by `seconds`; at once for 0 or less."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        sleeper = (self._monotonic_s + seconds, next(self._order), anyio.Event())
        heapq.heappush(self._asleep, sleeper)
        self._new_sleeper.set()
        self._new_sleeper = anyio.Event()
        try:
            await sleeper[2].wait()
        finally:
            if sleeper in self._asleep:  # cancelled
                self._asleep.remove(sleeper)
                heapq.heapify(self._asleep)

    def asleep(self) -> list[float]:
        """How long each sleeper still sleeps, in seconds, ascending. Empty: no timer runs."""
        return sorted(round(until_s - self._monotonic_s, 6) for until_s, _, _ in self._asleep)

    async def until_asleep(self, *seconds: float) -> None:
        """Return once there is a sleeper for each of `seconds` to go; without any, once anyone sleeps.

        Wait under `anyio.fail_after`.
        """
        wanted = sorted(seconds)
        while not self._asleep or not _contains(self.asleep(), wanted):
            await self._new_sleeper.wait()


class FakeIds:
    """Ids in the form of the real ones, counted up from 1; `first` keeps two sources apart."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def new_id(self) -> str:
        return f"{next(self._numbers):016x}"


def _contains(there: list[float], wanted: list[float]) -> bool:
    left = list(there)
    for each in wanted:
        if each not in left:
            return False
        left.remove(each)
    return True
