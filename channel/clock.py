"""The system's clock and sources of random ids, as parameters.

Nothing else in the product reads the clock or draws an id, so a test replaces both
(`fakes/clock.py`) and a schedule can be replayed.
"""

import os
import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Time as three readings; each has one use."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970: written to rows for people, never used to decide."""
        ...

    def monotonic(self) -> float:
        """Seconds that no wall-clock jump moves; comparable between processes of one boot."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of `monotonic`; at once for 0 or less, which a time that just came gives."""
        ...


class IdSource(Protocol):
    """Where new ids come from."""

    def new_id(self) -> str:
        """A fresh id: 16 lower-case hexadecimal digits, 64 random bits."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))


class SystemIds:
    """Ids from the operating system's random source."""

    def new_id(self) -> str:
        return os.urandom(8).hex()  # what `secrets` does, without its import
