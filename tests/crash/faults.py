"""Faults at the product's places, written as words: `place:of#n:what`.

    committed:hand_over:die            SIGKILL right after the commit of a hand-over
    in_flush:#2:stop                   SIGSTOP in the middle of the second flush
    request_written:thread/queue/add#3:die
    *:*#17:die=0.25                    at the 17th place of any kind; inside a write, after a quarter of its bytes
    *:*#17:soon=300                    dead about 300 µs after the 17th place, wherever that is

`*` stands for any place or any `of`; `#n` is the n-th passing, the first if left out.
"""

import os
import re
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil

from channel.fault_places import Place

WHATS = ("die", "stop", "soon")
HALF = 0.5
_SPEC = re.compile(r"(?P<place>\w+|\*):(?P<of>[^#:]*)(?:#(?P<nth>\d+))?:(?P<what>\w+)(?:=(?P<argument>[\d.]+))?")
_METHOD = re.compile(rb'"method":"([^"]+)"')


@dataclass(frozen=True)
class Fault:
    """`argument`: of `die` and `stop` the part of a write that goes out before, of `soon` microseconds."""

    place: str
    of: str
    nth: int
    what: str
    argument: float

    @classmethod
    def parse(cls, spec: str) -> "Fault":
        """Raises ValueError for a spec that would never do anything."""
        match = _SPEC.fullmatch(spec)
        if match is None or match["what"] not in WHATS or match["place"] not in ("*", *Place):
            raise ValueError(f"{spec!r} is no fault")
        return cls(match["place"], match["of"], int(match["nth"] or 1), match["what"], float(match["argument"] or HALF))

    def __str__(self) -> str:
        return f"{self.place}:{self.of}#{self.nth}:{self.what}={self.argument:g}"

    def is_at(self, place: Place, of: str) -> bool:
        return self.place in ("*", place.value) and self.of in ("*", of)


class FaultHook:
    """At most one fault, and a file that tells each passing: `@` with the pid at first, a line
    `place:of` each time, and `!` where the fault comes."""

    def __init__(self, fault: Fault | None, trace: Path) -> None:
        self._fault = fault
        self._left = fault.nth if fault else 0
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._is_inside = False
        os.write(self._trace, f"@{os.getpid()}\n".encode())

    def passing(self, place: Place, of: str) -> None:
        if self._is_due(place, of):
            self._act()

    def written_at_once(self, place: Place, data: memoryview) -> memoryview:
        """All, or where a fault is due a part; the rest comes here again."""
        if self._is_inside:
            self._is_inside = False
            self._act()
            return data
        if not self._is_due(place, _method_in(data)):
            return data
        assert self._fault is not None
        self._is_inside = True
        part = self._fault.argument if self._fault.what != "soon" else HALF
        return data[: min(max(1, int(len(data) * part)), len(data) - 1)]

    def _is_due(self, place: Place, of: str) -> bool:
        os.write(self._trace, f"{place.value}:{of}\n".encode())
        if self._fault is None or not self._fault.is_at(place, of):
            return False
        self._left -= 1
        return self._left == 0

    def _act(self) -> None:
        assert self._fault is not None
        os.write(self._trace, b"!\n")
        if self._fault.what == "soon":
            # Without a handler this signal ends a process as SIGKILL does: at once, whatever it is doing.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, max(1.0, self._fault.argument) / 1_000_000)
            return
        number = signal.SIGKILL if self._fault.what == "die" else signal.SIGSTOP
        signal.pthread_kill(threading.get_ident(), number)


@dataclass(frozen=True)
class Trace:
    """What a process told of its way."""

    path: Path

    def passings(self) -> list[str]:
        """`place:of`, in order."""
        return [line for line in self._lines() if line[0] not in "@!"]

    @property
    def pid(self) -> int | None:
        """None until the process has begun."""
        return next((int(line[1:]) for line in self._lines() if line[0] == "@"), None)

    @property
    def was_hit(self) -> bool:
        return "!" in self._lines()

    @property
    def is_stopped(self) -> bool:
        """Whether the fault's SIGSTOP holds the process."""
        if not self.was_hit:
            return False
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def _lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


def _method_in(data: memoryview) -> str:
    match = _METHOD.search(data[:200])
    return match[1].decode() if match else ""
