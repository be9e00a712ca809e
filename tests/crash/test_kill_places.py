"""Real processes die at each place where one can; pairs, stops and random instants are `make kill-matrix`."""

import pytest

from channel.fault_places import Place
from tests.crash.cases import LIVES, Case
from tests.crash.kill_matrix import Matrix, Plan, cases_of
from tests.crash.run import runner

pytestmark = pytest.mark.timeout(240)

JOBS = 4
"""Most of a case is waiting for other processes."""

LIVES_WITH_EVERY_PLACE = ("monitor", "queue, own server", "queue, dead daemon", "sender")


@pytest.mark.fault("F1")
@pytest.mark.fault("F22")
@pytest.mark.parametrize("receiver", LIVES)
async def test_wherever_a_process_dies_nothing_is_lost_and_nothing_is_given_twice(receiver: str) -> None:
    matrix = Matrix(seed=0)
    async with runner() as each:
        cases = await cases_of(each, Plan(0, pairs=0, instants=0, jobs=JOBS, only=[receiver], is_short=True))
        await each.run_all(cases, JOBS, matrix.add)
    assert matrix.failed == []
    # A server that is told to end has 95 ms, so on a busy machine it may not get as far as to give its lease back.
    assert [case for case in matrix.did_not_come if "release_lease" not in case.place] == []


async def test_every_place_is_passed_in_some_life() -> None:
    """A place that none passes would never be walked."""
    passed: set[str] = set()
    async with runner() as each:
        untouched = [Case(receiver, ("",)) for receiver in LIVES_WITH_EVERY_PLACE]
        for result in await each.run_all(untouched, JOBS):
            passed |= {passing.partition(":")[0] for passing in result.first_trace}
    assert passed == {place.value for place in Place}
