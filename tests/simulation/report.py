"""Runs as tables for RELIABILITY.md: what happened, and at which step each planted bug was noticed."""

from collections.abc import Callable, Iterable, Sequence

from channel.delivery_states import State
from tests import reliability_page
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.simulation import Broken, Report, simulate

_COUNTED = (State.SEEN, State.ACCEPTED, State.UNCERTAIN, State.CONFLICT, State.WITHDRAWN, State.PENDING)

Row = Sequence[object]


def head(seeds: range, steps: int) -> str:
    """What was run, on what."""
    return f"Seeds {seeds[0]} to {seeds[-1]}, {steps:,} steps each; {reliability_page.machine()}; simulated clock."


def runs(reports: Sequence[Report]) -> str:
    """One row a run, and their sum. A run that lost or repeated anything has no row: it ends the command."""
    heads = ["seed", "steps", "simulated", "kills", "sends", "deliveries", *(state.value for state in _COUNTED)]
    heads += ["added to threads", "shown to Claude", "of it repeats", "lost", "twice"]
    rows: list[list[object]] = [[report.seed, *_counts(report), 0, 0] for report in reports]
    if len(rows) > 1:
        rows.append(["all", *map(_sum, zip(*(row[1:] for row in rows), strict=True))])
    return reliability_page.table(
        heads, [[_shown(head, cell) for head, cell in zip(heads, row, strict=True)] for row in rows]
    )


def planted(seeds: Iterable[int], steps: int, on_step: Callable[[str], None] | None = None) -> tuple[str, bool]:
    """One row a planted bug; whether each was noticed."""
    noticed = [(mutation, notice(mutation, seeds, steps, on_step)) for mutation in MUTATIONS]
    rows = [
        [mutation.__name__.replace("_", " "), "never"]
        if broken is None
        else [mutation.__name__.replace("_", " "), broken.seed, broken.step, broken.what[0].splitlines()[-1]]
        for mutation, broken in noticed
    ]
    return reliability_page.table(["planted bug", "seed", "step", "noticed as"], rows), all(
        broken for _, broken in noticed
    )


def notice(
    mutation: Mutation, seeds: Iterable[int], steps: int, on_step: Callable[[str], None] | None = None
) -> Broken | None:
    """How the bug is noticed under the first of these seeds under which it is."""
    for seed in seeds:
        with mutation():
            try:
                simulate(seed, steps, on_step)
            except Broken as broken:
                return broken
    return None


def _counts(report: Report) -> list[int]:
    states = [report.outcomes.get(state.value, 0) for state in _COUNTED]
    made = [report.steps, report.simulated_s, report.kills, report.sends, report.deliveries]
    return [*made, *states, report.added, report.shown, report.repeats]


def _sum(column: Iterable[object]) -> int:
    return sum(cell for cell in column if isinstance(cell, int))


def _shown(head: str, cell: object) -> object:
    return f"{cell / 3_600:.1f} h" if head == "simulated" and isinstance(cell, int) else cell
