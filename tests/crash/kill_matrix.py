"""`make kill-matrix`: processes die at every place, alone, in pairs, and at random instants. What came of it: a table.

    python -m tests.crash.kill_matrix [--seed N] [--pairs 100] [--instants 1000] [--kills 50] [--write]

Real processes of the product against the fake harnesses; exit status 1 if anything was lost, given twice, or left
behind. `--write` puts the table into RELIABILITY.md.
"""

import argparse
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import anyio

from tests import campaigns, reliability_page
from tests.crash import places
from tests.crash.cases import LIVES, Case
from tests.crash.checks import Verdict
from tests.crash.instants import KILLS_A_WORLD
from tests.crash.run import Result, Runner, runner

COUNTS = ("delivered", "repeated", "uncertain", "withdrawn", "lost", "twice")
RANDOM_SIDES = ("monitor", "queue")


@dataclass
class Row:
    """A line of the table: cases of one kind, added up."""

    receiver: str
    place: str
    cases: int = 0
    broken: int = 0
    counts: Verdict = field(default_factory=Verdict)


@dataclass(frozen=True)
class Plan:
    """How much is run.

    `instants`: kills a side. `kills`: of each kind of process, after which nothing may be left. `is_short`: only
    the first passing of each place, and only deaths.
    """

    seed: int
    pairs: int
    instants: int
    jobs: int
    only: Sequence[str]
    kills: int = 0
    is_short: bool = False


class Matrix:
    """Adds results up, and tells of each that broke a promise."""

    def __init__(self, seed: int, say: campaigns.Say = print) -> None:
        self.seed = seed
        self.results = 0
        self._say = say
        self.failed: list[Result] = []
        self.did_not_come: list[Case] = []
        self.killed: dict[str, int] = {}
        """Of each kind of process, one after another in one world."""
        self._rows: dict[tuple[str, str], Row] = {}

    def add(self, result: Result, place: str = "") -> None:
        place = place or result.case.place
        row = self._rows.setdefault((result.case.receiver, place), Row(result.case.receiver, place))
        self.results += 1
        row.cases += max(1, result.kills)
        for name in COUNTS:
            setattr(row.counts, name, getattr(row.counts, name) + getattr(result.verdict, name))
        if not result.verdict.holds:
            row.broken += 1
            self.failed.append(result)
            self._say(f"BROKEN: {result.case}: {result.verdict}")
        elif not result.came:
            self.did_not_come.append(result.case)

    def table(self) -> str:
        head = ["receiver and place", "deaths", *COUNTS]
        rows = [
            [f"{row.receiver}: {row.place}", row.cases, *(getattr(row.counts, name) for name in COUNTS)]
            for _, row in sorted(self._rows.items())
        ]
        total = ["**all**", *(sum(int(str(row[at])) for row in rows) for at in range(1, len(head)))]
        return reliability_page.table(head, [*rows, total])

    def report(self, took_s: float) -> str:
        """The table, and under what it was made."""
        killed = ", ".join(f"{kind} {times} times" for kind, times in self.killed.items())
        return (
            f"Seed {self.seed}; {reliability_page.machine()}; against the fake harnesses; {took_s / 60:.0f} minutes. "
            f"Cases that broke a promise: {len(self.failed)}. "
            f"Planned deaths that did not come: {len(self.did_not_come)}. "
            f"Killed in one world, with no process and no file left: {killed or 'none'}.\n\n{self.table()}"
        )


async def cases_of(runner: Runner, plan: Plan) -> list[Case]:
    """All that the plan asks for, from what each receiver's life passes when nothing goes wrong."""
    dice = Random(plan.seed)
    found: list[Case] = []
    for receiver in plan.only:
        untouched = await runner.run(Case(receiver, ("",)))
        if not untouched.verdict.holds:
            raise RuntimeError(f"{receiver} without any fault: {untouched.verdict}")
        every = places.walked(receiver, untouched.first_trace)
        first = places.first_passings(every)
        found += places.singles(receiver, first if plan.is_short else every)
        found += () if plan.is_short else places.stopped(receiver, first)
        found += places.pairs(receiver, first, plan.pairs, dice)
    times = 1 if plan.is_short else 2
    return [*found, *(case for case in places.of_the_server(times) if case.receiver in plan.only)]


async def run(plan: Plan) -> Matrix:
    """The whole matrix."""
    dice = Random(plan.seed)
    with campaigns.progress() as (show, say):
        matrix = Matrix(plan.seed, say)
        async with runner() as each, anyio.create_task_group() as tasks:
            cases = await cases_of(each, plan)
            worlds = -(-plan.instants // KILLS_A_WORLD)
            sides = [(side, dice.randrange(2**32)) for side in RANDOM_SIDES if side in plan.only for _ in range(worlds)]
            say(f"{len(cases)} cases, {plan.instants} random instants a side; seed {plan.seed}")
            if plan.kills:
                tasks.start_soon(_kill_each_kind, each, plan.kills, matrix)

            def add(result: Result, place: str = "") -> None:
                matrix.add(result, place)
                show(f"{matrix.results} of {len(cases) + len(sides)} worlds, {len(matrix.failed)} broken …")

            await each.run_all(cases, plan.jobs, add)
            await each.run_all_at_random(sides, plan.jobs, lambda result: add(result, "random instants"))
    return matrix


async def _kill_each_kind(each: Runner, times: int, matrix: Matrix) -> None:
    result, matrix.killed = await each.run_kills_of_each_kind(times)
    matrix.add(result, "each kind of process")


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kill_matrix", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument(
        "--pairs", type=int, default=100, metavar="N", help="pairs of deaths a receiver, drawn by the seed"
    )
    parser.add_argument("--instants", type=int, default=1_000, metavar="N", help="random instants a side")
    parser.add_argument("--kills", type=int, default=50, metavar="N", help="of each kind of process, in one world")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="cases at a time")
    parser.add_argument("--only", choices=LIVES, action="append", metavar="RECEIVER", help=", ".join(LIVES))
    parser.add_argument("--write", action="store_true", help="put the table into RELIABILITY.md")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    plan = Plan(chosen.seed, chosen.pairs, chosen.instants, chosen.jobs, chosen.only or list(LIVES), chosen.kills)
    began_at = time.monotonic()
    matrix = campaigns.run(run, plan)
    report = matrix.report(time.monotonic() - began_at)
    for case in matrix.did_not_come:
        print(f"did not come: {case}")
    print(report)
    if chosen.write:
        reliability_page.put("kill matrix", report)
    return 1 if matrix.failed else 0


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
