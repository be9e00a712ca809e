"""The promises hold under seeded schedules of everything, and the checks notice when they do not.

A failure prints the seed, the step and the last steps; `make simulate SEED= STEPS=` replays it exactly.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation, hand_over_after_the_write
from tests.simulation.report import notice
from tests.simulation.simulation import Broken, simulate

ROOT = Path(__file__).parents[2]
STEPS = 10_000
SHORT = 1_500
SEEDS_FOR_A_PLANTED_BUG = (5, *range(1, 5), *range(6, 13))
"""The first notices all of them at present; a change of what the product waits for draws other schedules."""


@pytest.mark.timeout(180)
@pytest.mark.fault("F34")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_ten_thousand_steps_nothing_is_lost_nothing_comes_twice_and_all_comes_to_a_true_end(seed: int) -> None:
    report = simulate(seed, STEPS)

    assert report.kills > 0
    assert report.sends > 0
    assert report.outcomes["seen"] > report.deliveries / 2


@cache
def _passes(seed: int) -> None:
    """Most bugs are noticed under the same seed."""
    simulate(seed, STEPS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_noticed_and_the_product_passes_the_same_seed(mutation: Mutation) -> None:
    broken = notice(mutation, SEEDS_FOR_A_PLANTED_BUG, STEPS)

    assert broken is not None
    _passes(broken.seed)


def test_a_seed_replays_exactly_in_another_process_with_other_hashes() -> None:
    here = simulate(1, SHORT)

    program = f"from tests.simulation.simulation import simulate; print(simulate(1, {SHORT}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    there = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert there.stdout.strip() == here.digest


def test_other_seeds_are_other_runs() -> None:
    assert simulate(1, SHORT).digest != simulate(2, SHORT).digest


@pytest.mark.timeout(180)
def test_a_failure_tells_seed_and_step_and_fails_at_the_same_step_again() -> None:
    first = notice(hand_over_after_the_write, SEEDS_FOR_A_PLANTED_BUG, STEPS)
    assert first is not None
    with hand_over_after_the_write(), pytest.raises(Broken) as second:
        simulate(first.seed, STEPS)

    assert str(second.value) == str(first)
    assert f"make simulate SEED={first.seed} STEPS={STEPS}" in str(first)
    assert f"step {first.step}" in str(first)
