"""An event loop whose time stands still until the simulation moves it, and that does the same each time.

Everything of a simulation runs in this one thread. Nothing waits for real time: the driver is always ready, so
the loop never sleeps in its selector.
"""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any

SETTLE_ROUNDS_MAX = 10_000
"""Rounds of the loop without a step of the simulation; a tool call takes a few dozen. More: something spins."""

ROUNDING_S = 1e-6
"""Sums of fractions of seconds are not exact: a timer so near is due, or it would be set again and again."""

QUIET_ROUNDS = 2
"""A file that became readable is noticed one round after the loop has nothing else to do."""


class BusyLoop(Exception):
    """Tasks that keep each other running without ever waiting for anything."""


class _Task(asyncio.Task):  # type: ignore[type-arg]
    """Hashed by the order of its making: anyio keeps tasks in sets and cancels them in the order of a set."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`time()` is in seconds and moves by `move_time` only."""

    def __init__(self, start_s: float) -> None:
        self._now_s = start_s
        self._task_numbers = count(1)
        super().__init__()
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        return self._now_s

    def move_time(self, seconds: float) -> None:
        """Timers whose time has come run when the caller next waits."""
        now_s = self._now_s + seconds
        self._now_s = max([now_s, *(at_s for at_s in self._timers() if at_s < now_s + ROUNDING_S)])

    def next_task_number(self) -> int:
        return next(self._task_numbers)

    def next_timer_s(self) -> float | None:
        """Seconds to the next timer; None: none is set."""
        at_s = min(self._timers(), default=None)
        return None if at_s is None else max(0.0, at_s - self._now_s)

    def _timers(self) -> list[float]:
        return [handle.when() for handle in self._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]

    async def settle(self) -> None:
        """Return once every other task waits. Raises BusyLoop."""
        quiet = 0
        for _ in range(SETTLE_ROUNDS_MAX):
            await asyncio.sleep(0)
            quiet = 0 if self._ready else quiet + 1  # type: ignore[attr-defined]
            if quiet == QUIET_ROUNDS:
                return
        raise BusyLoop(f"{SETTLE_ROUNDS_MAX} rounds of the event loop, and still something runs")


def _make_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> _Task:
    assert isinstance(loop, SimulatedLoop)
    task = _Task(work, loop=loop, **options)
    task.number = loop.next_task_number()
    return task
