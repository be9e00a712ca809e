"""A run: a seed decides every choice, so the same seed and number of steps give the same run, line by line."""

import hashlib
import logging
import random
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from channel.presence import LEASE_TTL_S, Presence
from tests.simulation.driver import simulated_driver
from tests.simulation.loop import BusyLoop, SimulatedLoop
from tests.simulation.machine import Move
from tests.simulation.people import People
from tests.simulation.world import World
from waiters.background import background_tasks

START_S = 10_000.0

USES, HARMS, MENDS, TIMES = 0.03, 0.012, 0.025, 0.05
"""Of a hundred steps so many are tool calls, accidents, mendings, and the passing of time though there is work."""

IDLE_USES = 0.2
"""With nothing to do, so often somebody calls, instead of time passing."""

JUMPS, JUMP_S_MAX = 0.2, 3.0
"""Of the passings of time, so many do not stop at the next timer, and how long they are."""

SETTLED_WITHIN_S = 3 * 3_600
"""Of simulated time, once nothing goes wrong any more: the longest look interval is ten minutes."""

STEPS_WITHOUT_TIME_MAX = 5_000
"""With nothing going wrong, all that is to be done now is done in so many steps, or something spins."""

IDLE_S = 600.0
IDLE_STEPS_MAX = 1_800
"""Five servers and three streamers renew leases each 20 s and look at the file each 30 s."""
STEPS_A_LOOK_MAX = 150
"""What is uncertain is looked for, by the first of five servers that comes to it."""

TRACE_SHOWN = 60


@dataclass(frozen=True)
class Report:
    """What happened in a run."""

    seed: int
    steps: int
    simulated_s: int
    kills: int
    sends: int
    deliveries: int
    outcomes: dict[str, int]
    added: int
    shown: int
    repeats: int
    suppressed: int
    digest: str
    """Of the whole trace: equal for equal runs."""


class Broken(Exception):
    """A promise was broken. The text says which, the seed, the step and what led to it."""

    def __init__(self, seed: int, steps: int, step: int, what: list[str], trace: list[str]) -> None:
        self.seed = seed
        self.step = step
        self.what = what
        said = "\n".join([*trace, "", *what])
        super().__init__(f"{said}\nseed {seed}, step {step}: replay with `make simulate SEED={seed} STEPS={steps}`")


class Simulation:
    """One run over one world."""

    def __init__(self, world: World, seed: int, steps: int, show: Callable[[str], None] | None) -> None:
        self._world = world
        self._seed = seed
        self._steps = steps
        self._rng = Random(seed)
        self._people = People(world, self._rng)
        self._step = 0
        self._show = show
        self._trace: deque[str] = deque(maxlen=TRACE_SHOWN)
        self._digest = hashlib.sha256()

    async def run(self) -> Report:
        """Raises Broken."""
        for agent in self._world.agents:
            await self._do(Move("the beginning", _as_move(lambda agent=agent: self._people._start(agent))))  # type: ignore[misc]
        while self._step < self._steps:
            await self._do(self._choose())
        await self._settle()
        await self._rest()
        report = self._report()
        await self._die()
        return report

    def _choose(self) -> Move:
        chance = self._rng.random()
        for share, who, deed in (
            (USES, "somebody", self._people.use),
            (HARMS, "an accident", self._people.harm),
            (MENDS, "somebody", self._people.mend),
            (TIMES, "time", self._pass_time),
        ):
            if chance < share:
                return Move(who, _as_move(deed))
            chance -= share
        moves = self._world.moves()
        if moves:
            return self._rng.choice(moves)
        if self._rng.random() < IDLE_USES:
            return Move("somebody", _as_move(self._people.use))
        return Move("time", _as_move(self._pass_time))

    def _pass_time(self) -> str:
        next_s = self._world.loop.next_timer_s()
        seconds = self._rng.uniform(0.0, JUMP_S_MAX) if next_s is None or self._rng.random() < JUMPS else next_s
        self._world.loop.move_time(seconds)
        return f"{seconds:.3f} s pass"

    async def _do(self, move: Move) -> None:
        self._step += 1
        said = await move.do(self._rng)
        line = f"{self._step:6} {self._world.loop.time() - START_S:10.3f} {move.who}: {said}"
        self._trace.append(line)
        self._digest.update(line.encode() + b"\n")
        if self._show is not None:
            self._show(line)
        try:
            await self._world.loop.settle()
        except BusyLoop as error:
            self._fail([str(error)])
        self._world.tick()
        self._world.checker.check_step()
        broken = self._world.broken()
        if broken:
            self._fail(broken)

    async def _settle(self) -> None:
        """Nothing goes wrong any more: all that was sent comes to its end."""
        for agent in self._world.claudes:
            agent.session.loses_next_event = False
            for monitor in agent.session.monitors:
                monitor.expire()  # so that what Claude Code lost is given again
        until_s = self._world.loop.time() + SETTLED_WITHIN_S
        looked_at_s = 0.0
        while True:
            await self._do_all_that_is_to_be_done()
            now_s = self._world.loop.time()
            if now_s >= looked_at_s + 10.0:
                looked_at_s = now_s
                ends = self._world.checker.open_ends()
                if not ends:
                    return
                if now_s > until_s:
                    self._fail([f"{SETTLED_WITHIN_S} s after all is well:", *ends[:20]])
            await self._do(Move("time", _as_move(self._next_timer)))

    async def _do_all_that_is_to_be_done(self) -> None:
        for _ in range(STEPS_WITHOUT_TIME_MAX):
            if self._people.damage():
                await self._do(Move("somebody", _as_move(self._people.mend)))
                continue
            for agent in self._world.agents:
                if agent.can_call and agent.greeted is not agent.server:
                    agent.greeted = agent.server
                    agent.call("send", {"text": f"{agent.name} is back", "room": "hall"})
            moves = self._world.moves()
            if not moves:
                return
            await self._do(self._rng.choice(moves))
        self._fail([f"{STEPS_WITHOUT_TIME_MAX} steps, and there is still something to do at once"])

    async def _rest(self) -> None:
        """With nothing to do, next to nothing runs."""
        began, looks, until_s = self._step, self._looks(), self._world.loop.time() + IDLE_S
        while self._world.loop.time() < until_s:
            await self._do_all_that_is_to_be_done()
            await self._do(Move("time", _as_move(self._next_timer)))
        looks = self._looks() - looks
        if self._step - began > IDLE_STEPS_MAX + looks * STEPS_A_LOOK_MAX:
            self._fail([f"{self._step - began} steps and {looks} looks in {IDLE_S:g} s, and there was nothing to do"])

    async def _die(self) -> None:
        """All processes are killed, the wall clock is wrong, and nobody can see who lives: leases run out."""
        machine = self._world.machine
        for process in machine.processes:
            process.kill()
        await self._world.loop.settle()
        machine.set_wall_clock(-3_600_000)
        self._world.loop.move_time(LEASE_TTL_S + 1)
        held = self._world.checker.held_leases(Presence(machine, machine.boot_id, lambda _: None))
        if held:
            self._fail([f"the lease of {address} is held by a dead process" for address in held])

    def _looks(self) -> int:
        return self._world.checker.counted("SELECT coalesce(sum(looks), 0) FROM deliveries")

    def _next_timer(self) -> str:
        seconds = self._world.loop.next_timer_s()
        assert seconds is not None
        self._world.loop.move_time(seconds)
        return f"{seconds:.3f} s pass"

    def _fail(self, what: list[str]) -> None:
        raise Broken(self._seed, self._steps, self._step, what, list(self._trace))

    def _report(self) -> Report:
        truth, checker = self._world.truth, self._world.checker
        return Report(
            seed=self._seed,
            steps=self._step,
            simulated_s=round(self._world.loop.time() - START_S),
            kills=self._people.kills,
            sends=len(self._world.answers),
            deliveries=checker.counted("SELECT count(*) FROM deliveries"),
            outcomes=checker.count_states(),
            added=truth.times_added,
            shown=truth.times_shown,
            repeats=sum(each.repeat for shown in truth.shown.values() for each in shown),
            suppressed=truth.suppressed,
            digest=self._digest.hexdigest()[:16],
        )


def simulate(seed: int, steps: int, show: Callable[[str], None] | None = None) -> Report:
    """Run `steps` steps and let the world settle. `show` gets each line of the trace. Raises Broken."""
    with tempfile.TemporaryDirectory(prefix="simulation-") as folder, simulated_driver(), _same_random(seed):
        path = Path(folder)
        loop = SimulatedLoop(START_S)
        try:
            return loop.run_until_complete(_run(loop, path, seed, steps, show))
        finally:
            loop.close()


async def _run(loop: SimulatedLoop, folder: Path, seed: int, steps: int, show: Callable[[str], None] | None) -> Report:
    async with background_tasks() as tasks:
        world = World(loop, folder, tasks)
        with _errors_are_noted(world):
            try:
                return await Simulation(world, seed, steps, show).run()
            finally:
                await _end(world)


async def _end(world: World) -> None:
    for process in world.machine.processes:
        process.kill()
    await world.loop.settle()
    world.close()


def _as_move(deed: Callable[[], str]) -> Callable[[Random], Awaitable[str]]:
    async def move(_: Random) -> str:
        return deed()

    return move


class _Errors(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.truth.broken.append(self.format(record))


@contextmanager
def _errors_are_noted(world: World) -> Iterator[None]:
    """What the product logs as an error is a fault of it."""
    handler, logger = _Errors(world), logging.getLogger("waiters")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def _same_random(seed: int) -> Iterator[None]:
    """tenacity draws its pauses from the global source."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
