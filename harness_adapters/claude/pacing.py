"""When the next flush may go to Claude Code's Monitor, so that it suppresses none.

Monitor gives each 200 ms window of lines one token of a bucket that holds 10 and gets one more at
each whole 2 s; without a token the text is lost in silence (measured: Claude Code 2.1.332). The
bucket here is smaller and slower, so Monitor's always has a token when this one has. Pure: times
are readings of `Clock.monotonic`, given by the caller.
"""

import math
from typing import NamedTuple


class PaceLimits(NamedTuple):
    """A bucket of `burst` flushes that gets one more each `refill_s`, and the least pause between two."""

    burst: int
    refill_s: float
    pause_s: float


MONITOR_LIMITS = PaceLimits(burst=9, refill_s=2.1, pause_s=1.0)
"""One below Monitor's bucket of 10, a twentieth slower than its 2 s. The pause, counted from when the
reader took the last flush, keeps two flushes out of one window, where their lines would share one cut. A window is
open for 200 ms, but on a busy machine (load 12 on 2 cores) some were closed after 335, and one after more than 450."""

UNLIMITED = PaceLimits(burst=1, refill_s=0.0, pause_s=0.0)
"""`--pace off`: for a host without Monitor's limits."""


class Pacing:
    """Starts full, as each Monitor does. Tell it of each flush, then ask when the next may go."""

    def __init__(self, limits: PaceLimits = MONITOR_LIMITS) -> None:
        self._limits = limits
        self._full_at = -math.inf
        """When the bucket is full again: each flush moves it by one refill."""
        self._taken_at = -math.inf

    @property
    def keeps_apart(self) -> bool:
        """Whether two flushes in one window do harm."""
        return self._limits.pause_s > 0

    def emptied(self, now: float) -> None:
        """Another one may have used the bucket up by `now`."""
        self._full_at = now + self._limits.burst * self._limits.refill_s

    def flushed(self, now: float) -> None:
        """A flush was written at `now`."""
        self._full_at = max(self._full_at, now) + self._limits.refill_s

    def taken(self, now: float) -> None:
        """The reader had emptied the pipe at `now`."""
        self._taken_at = now

    def next_flush_at(self) -> float:
        """The earliest time of the next flush, for a pipe whose last flush was taken; may be past."""
        has_token_at = self._full_at - (self._limits.burst - 1) * self._limits.refill_s
        return max(has_token_at, self._taken_at + self._limits.pause_s)
