"""`make simulate`: run seeds, print the table, and end at the first broken promise with all that led to it.

python -m tests.simulation --seed 7 --steps 10000 --trace      # replay one, line by line
python -m tests.simulation --seeds 20 --write                  # seeds 1 to 20, into RELIABILITY.md
python -m tests.simulation --planted                           # at which step each planted bug is noticed
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness_adapters.commands.progress import Show
from tests import reliability_page
from tests.campaigns import progress, until_interrupted
from tests.simulation import report
from tests.simulation.simulation import Broken, Report, simulate

STEPS = 10_000
STEPS_BETWEEN_SHOWS = 100
SEEDS_FOR_A_PLANTED_BUG = 12


def main() -> int:
    """The exit status: 1 if a promise was broken, or a planted bug was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after the other")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each, before the world is let settle")
    parser.add_argument("--trace", action="store_true", help="print each step")
    parser.add_argument("--planted", action="store_true", help="run the planted bugs instead")
    parser.add_argument("--write", action="store_true", help="put the table into RELIABILITY.md")
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + (SEEDS_FOR_A_PLANTED_BUG if chosen.planted else chosen.seeds))
    all_is_well = True
    try:
        with _steps(chosen.trace) as (on_step, show):
            if chosen.planted:
                table, all_is_well = report.planted(seeds, chosen.steps, on_step)
            else:
                table = report.runs([_run(seed, chosen.steps, on_step, show) for seed in seeds])
    except Broken as broken:
        print(broken)
        return 1
    said = f"{report.head(seeds, chosen.steps)}\n\n{table}"
    print(said)
    if chosen.write:
        reliability_page.put("planted bugs" if chosen.planted else "simulation", said)
    return 0 if all_is_well else 1


class _Interrupted(Exception):
    """Ctrl-C, noticed between two steps: within one it would come out of the simulated programs as anything."""


@contextmanager
def _steps(trace: bool) -> Iterator[tuple[Callable[[str], None], Show]]:
    """What takes each line of a trace, and what shows how far it is. Raises KeyboardInterrupt at Ctrl-C."""
    is_interrupted = False

    def note(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        with progress() as (show, _):
            done = 0

            def step(line: str) -> None:
                nonlocal done
                if is_interrupted:
                    raise _Interrupted
                done += 1
                if trace:
                    print(line)
                elif done % STEPS_BETWEEN_SHOWS == 0:
                    show(f"{done:,} steps …")

            yield step, show
    except _Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _run(seed: int, steps: int, on_step: Callable[[str], None], show: Show) -> Report:
    report = simulate(seed, steps, on_step)
    show("")
    print(f"seed {seed}: {report.steps:,} steps, nothing broken", file=sys.stderr)
    return report


if __name__ == "__main__":
    raise SystemExit(until_interrupted(main))
