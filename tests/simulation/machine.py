"""The simulated machine: its clocks, its processes, and whose turn it is.

Whatever a simulated process does that another one could notice begins with `turn`: there it waits until the
driver picks it. Between two turns it only changes its own memory, so a process that is killed or stopped at a turn
is one killed or stopped anywhere between the last effect and the next.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import anyio

from fakes.clock import WALL_START_MS
from tests.simulation.loop import SimulatedLoop
from waiters.processes import ProcessIdentity

OTHER_NAMESPACE = "other"
"""The PID namespace of processes that those of other namespaces can't see."""


class Killed(BaseException):
    """The process is dead: its code is unwound, and nothing that it does on the way has an effect."""


def _always() -> bool:
    return True


@dataclass(eq=False)
class Parked:
    """A task at a turn. `may_go`: whether it could go on now."""

    process: "Process"
    what: str
    may_go: Callable[[], bool]
    event: anyio.Event = field(default_factory=anyio.Event)

    async def go(self, _: Random) -> str:
        self.event.set()
        return self.what


class Move(NamedTuple):
    """Something that the world outside our processes could do next; `do` says in a few words what it did."""

    who: str
    do: Callable[[Random], Awaitable[str]]


class Process:
    """One process. `name` for the trace; `kind` is server, streamer or harness."""

    def __init__(self, machine: "Machine", name: str, kind: str, identity: ProcessIdentity) -> None:
        self.machine = machine
        self.name = name
        self.kind = kind
        self.identity = identity
        self.dead = False
        self.stopped = False
        self.died_at_s = 0.0
        self.database: sqlite3.Connection | None = None
        self.at_death: list[Callable[[], None]] = []
        """What the operating system does for it: its pipes end, its children notice."""
        self._scope = anyio.CancelScope()

    @property
    def text(self) -> str:
        return self.identity.to_text()

    async def run(self, program: Callable[[], Awaitable[None]]) -> None:
        """Run a program as this process, to its end or its death."""
        CURRENT.set(self)
        try:
            with self._scope:
                await program()
        except BaseException as error:
            if not self.dead:
                self.machine.crashes.append(f"{self.name} ended by {error!r}")
        finally:
            self._end()

    async def as_current(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run something that came from outside, as this process."""
        CURRENT.set(self)
        await work(*arguments)

    def kill(self) -> None:
        """SIGKILL: at once, wherever it is."""
        if not self.dead:
            self._end()
            self._scope.cancel()
            self.machine.release(self)

    def _end(self) -> None:
        if self.dead:
            return
        self.dead = True
        self.stopped = False
        self.died_at_s = self.machine.loop.time()
        if self.database is not None:
            self.database.close()  # rolls back, as the next to open the file would
        for each in self.at_death:
            each()


CURRENT: ContextVar[Process] = ContextVar("CURRENT")
"""The process whose code runs."""


async def turn(what: str, may_go: Callable[[], bool] = _always) -> None:
    """Wait to be picked. Raises Killed."""
    process = CURRENT.get()
    await process.machine.park(process, what, may_go)


class Machine:
    """Clock (the product's `Clock`), processes and turns."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.boot = 1
        self.parked: list[Parked] = []
        self.processes: list[Process] = []
        self.crashes: list[str] = []
        self._wall_offset_ms = 0
        self._booted_at_s = 0.0
        self._by_text: dict[str, Process] = {}

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    # --- time ---

    def now_ms(self) -> int:
        return WALL_START_MS + self._wall_offset_ms + round(self.loop.time() * 1_000)

    def monotonic(self) -> float:
        return self.loop.time() - self._booted_at_s

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await anyio.sleep(seconds)
        await turn("wakes")

    def set_wall_clock(self, by_ms: int) -> None:
        self._wall_offset_ms += by_ms

    # --- processes ---

    def new_process(self, kind: str, name: str, *, other_namespace: bool = False) -> Process:
        number = len(self.processes) + 1
        namespace = OTHER_NAMESPACE if other_namespace else "1"
        identity = ProcessIdentity(self.boot_id, namespace, number, round(self.monotonic() * 100))
        process = Process(self, f"{name}#{number}", kind, identity)
        self.processes.append(process)
        self._by_text[process.text] = process
        return process

    def living(self, kind: str) -> list[Process]:
        return [process for process in self.processes if process.kind == kind and not process.dead]

    def find(self, text: str) -> Process:
        return self._by_text[text]

    def is_alive(self, text: str) -> bool | None:
        """What the process whose turn it is can see of another: `channel.presence.Liveness`."""
        process = self._by_text[text]
        if process.identity.boot_id != self.boot_id:
            return False
        if process.identity.pid_namespace != CURRENT.get().identity.pid_namespace:
            return None
        return not process.dead

    def reboot(self) -> None:
        """Power off and on: all processes are gone, the monotonic clock begins anew."""
        for process in self.processes:
            process.kill()
        self.boot += 1
        self._booted_at_s = self.loop.time() - 1.0

    # --- turns ---

    async def park(self, process: Process, what: str, may_go: Callable[[], bool]) -> None:
        if process.dead:
            raise Killed
        parked = Parked(process, what, may_go)
        self.parked.append(parked)
        try:
            await parked.event.wait()
        finally:
            self.parked.remove(parked)
        if process.dead:
            raise Killed

    def ready(self) -> list[Parked]:
        """Who could be picked, process by process: which of two processes came first is the kernel's whim."""
        ready = [each for each in self.parked if not each.process.stopped and each.may_go()]
        return sorted(ready, key=lambda each: each.process.identity.pid)

    def release(self, process: Process) -> None:
        """A dead process waits for no turn."""
        for each in self.parked:
            if each.process is process:
                each.event.set()
