"""Repeating what is safe to repeat: reads, renewals, look-ups. Never a hand-over, never an add."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from channel.clock import Clock
from channel.errors import StoreBusy

REPEATS_MAX = 3
FIRST_PAUSE_S = 0.2
PAUSE_S_MAX = 2.0

REST_S_MAX = 60.0
"""The longest rest of an address that can't be given anything now."""

Result = TypeVar("Result")


async def while_busy(clock: Clock, call: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `call`, tried again while the database is locked by others. Raises StoreBusy at last.

    `call` must be safe to repeat. SQLite itself waits some seconds in each try.
    """
    try:
        return await call()
    except StoreBusy:
        pass
    # Imported here: a streamer does without it as long as it can, and a locked database is rare.
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

    async def again() -> Result:  # tenacity awaits only what is a coroutine function
        return await call()

    retrying = AsyncRetrying(
        sleep=clock.sleep,
        stop=stop_after_attempt(REPEATS_MAX),
        wait=wait_random_exponential(multiplier=FIRST_PAUSE_S, max=PAUSE_S_MAX),
        retry=retry_if_exception_type(StoreBusy),
        reraise=True,
    )
    return await retrying(again)


class BackOff:
    """Growing rests, from one second to REST_S_MAX; a success begins anew."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure_s(self) -> float:
        """Seconds to rest now."""
        self._failures += 1
        return min(REST_S_MAX, float(2 ** min(self._failures - 1, 10)))

    def succeeded(self) -> None:
        self._failures = 0
