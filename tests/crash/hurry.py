"""One clock for all processes of a case, so many times as fast as the system's: minutes by the rules are seconds."""

from dataclasses import dataclass

from channel.clock import SystemClock

_SYSTEM = SystemClock()


@dataclass(frozen=True)
class CommonClock(SystemClock):
    """Began at `since_ms` and `since_s` of the system's clocks; leases of one process are judged by another."""

    times: float
    since_ms: int
    since_s: float

    @classmethod
    def beginning_now(cls, times: float) -> "CommonClock":
        return cls(times, _SYSTEM.now_ms(), _SYSTEM.monotonic())

    def to_text(self) -> str:
        return f"{self.times}@{self.since_ms}@{self.since_s}"

    @classmethod
    def from_text(cls, text: str) -> "CommonClock":
        times, since_ms, since_s = text.split("@")
        return cls(float(times), int(since_ms), float(since_s))

    def now_ms(self) -> int:
        return self.since_ms + int((_SYSTEM.now_ms() - self.since_ms) * self.times)

    def monotonic(self) -> float:
        return self.since_s + (_SYSTEM.monotonic() - self.since_s) * self.times

    async def sleep(self, seconds: float) -> None:
        await _SYSTEM.sleep(seconds / self.times)
