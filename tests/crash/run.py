"""Living cases, several at a time, and what came of each."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from tests.crash.cases import Case, live
from tests.crash.checks import Verdict, judge
from tests.crash.instants import KILLS_A_WORLD, kill_at_random
from tests.crash.leftovers import kill_each_kind, left_files, processes_of, until_no_process_is_left
from tests.crash.world import World, crash_world
from tests.crash.zygote import Zygote, zygote

TRIES = 3
"""A life is not the same each time: a look may find all at once, and a server may have to end before its last step."""

BOTH = "both receivers"

KILL_S_MAX = 30.0
"""For one kill of each kind."""

CASE_S_MAX = 90.0
"""A case takes two to eight seconds on a quiet machine, and some wait for a lease to be renewed."""


@dataclass(frozen=True)
class Result:
    """`came`: whether all of the case's faults did."""

    case: Case
    verdict: Verdict
    came: bool
    first_trace: tuple[str, ...] = ()
    """What the first process of the product passed."""
    kills: int = 1


class Runner:
    """Runs cases below a folder. Made by `runner`."""

    def __init__(self, folder: Path, starter: Zygote) -> None:
        self._folder = folder
        self._starter = starter
        self._worlds = 0

    async def run(self, case: Case) -> Result:
        """One case in a world of its own, and in another where its deaths did not come."""

        async def life(world: World) -> bool:
            return all(await live(world, case))

        for _ in range(TRIES):
            result = await self._run(case, life, CASE_S_MAX)
            if result.came or not result.verdict.holds:
                break
        return result

    async def run_at_random(self, receiver: str, seed: int) -> Result:
        """KILLS_A_WORLD random deaths on one side, in one world."""

        async def life(world: World) -> bool:
            await kill_at_random(world, receiver, seed, KILLS_A_WORLD)
            return True

        case = Case(receiver, (f"at random, seed {seed}",))
        return replace(await self._run(case, life, CASE_S_MAX * KILLS_A_WORLD / 4), kills=KILLS_A_WORLD)

    async def run_kills_of_each_kind(self, times: int) -> tuple[Result, dict[str, int]]:
        """So many kills of each kind of process in one world; and how often each was killed."""
        killed: dict[str, int] = {}

        async def life(world: World) -> bool:
            killed.update(await kill_each_kind(world, times))
            return True

        case = Case(BOTH, ("one kind after another",))
        result = await self._run(case, life, CASE_S_MAX + KILL_S_MAX * times)
        return replace(result, kills=sum(killed.values())), killed

    async def _run(self, case: Case, life: Callable[[World], Awaitable[bool]], seconds: float) -> Result:
        self._worlds += 1
        root = self._folder / f"world-{self._worlds}"
        async with crash_world(root, self._starter) as world:
            came, failure = False, ""
            with anyio.move_on_after(seconds) as limit:
                try:
                    came = await life(world)
                    await until_no_process_is_left(world)
                except Exception as error:  # a campaign goes on, and fails at its end
                    failure = f"the case itself failed: {error!r}"
            verdict = judge(world)
            verdict.broken += [failure] if failure else []
            if limit.cancelled_caught:
                left = processes_of(world.root)
                verdict.broken.append(f"no rest within {seconds:g} s: {await _told(world)}; processes left: {left}")
            else:
                verdict.broken += left_files(world)
            passed = tuple(world.traces[0].passings()) if world.traces else ()
        shutil.rmtree(root)
        return Result(case, verdict, came, passed)

    async def run_all(
        self, cases: Iterable[Case], jobs: int, on_result: Callable[[Result], None] = lambda _: None
    ) -> Sequence[Result]:
        """All cases, `jobs` at a time."""
        return await _side_by_side([partial(self.run, case) for case in cases], jobs, on_result)

    async def run_all_at_random(
        self, sides: Iterable[tuple[str, int]], jobs: int, on_result: Callable[[Result], None]
    ) -> Sequence[Result]:
        """A world for each receiver and seed."""
        return await _side_by_side([partial(self.run_at_random, *side) for side in sides], jobs, on_result)


async def _side_by_side(
    runs: Iterable[Callable[[], Awaitable[Result]]], jobs: int, on_result: Callable[[Result], None]
) -> Sequence[Result]:
    results: list[Result] = []
    waiting = iter(list(runs))

    async def work() -> None:
        for run in waiting:
            result = await run()
            results.append(result)
            on_result(result)

    async with anyio.create_task_group() as tasks:
        for _ in range(jobs):
            tasks.start_soon(work)
    return results


@asynccontextmanager
async def runner() -> AsyncIterator[Runner]:
    with tempfile.TemporaryDirectory(prefix="agent-channel-crash-") as folder:
        async with zygote() as starter:
            yield Runner(Path(folder).resolve(), starter)


async def _told(world: World) -> str:
    return "; ".join(f"{row['message_id']} to {row['recipient']}: {row['state']}" for row in await world.rows())
