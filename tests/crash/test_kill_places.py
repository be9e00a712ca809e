"""Real processes die at each place where one can; pairs, stops and random instants are `make kill-matrix`."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from channel.fault_places import Place
from fakes.faults import set_faults
from tests.another_session import LOOK_S
from tests.crash.cases import LIVES, Case, daemon, last_server
from tests.crash.checks import judge
from tests.crash.kill_matrix import Matrix, Plan, cases_of
from tests.crash.run import runner
from tests.crash.world import CODEX_ROLE, crash_world
from tests.crash.zygote import zygote

pytestmark = pytest.mark.timeout(240)

JOBS = 4
"""Most of a case is waiting for other processes."""

LIMIT_S = 120

MORE_THAN_A_SOCKET_HOLDS = "x" * 900_000

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


@pytest.mark.fault("F22")
async def test_a_server_killed_in_the_middle_of_a_frame_to_the_daemon_adds_nothing_and_says_so(tmp_path: Path) -> None:
    """The daemon reads nothing while the frame is written, so the socket is full before all of it is out."""
    async with zygote() as starter, crash_world(tmp_path / "world", starter) as world:
        with anyio.fail_after(LIMIT_S):
            set_faults(world.home, "after_answer:thread/queue/list:stop")
            await world.send(MORE_THAN_A_SOCKET_HOLDS, CODEX_ROLE)
            async with daemon(world) as daemon_pid:
                async with world.server() as victim:
                    while "request_unwritten:thread/queue/add" not in victim.trace.passings():  # noqa: ASYNC110
                        await anyio.sleep(LOOK_S)
                    assert "request_written:thread/queue/add" not in victim.trace.passings()
                    os.kill(victim.identity.pid, signal.SIGKILL)
                    await victim.wait_ended()
                os.kill(daemon_pid, signal.SIGCONT)
                await last_server(world)
        verdict = judge(world)
    assert verdict.holds, verdict
    assert (verdict.uncertain, verdict.delivered) == (1, 1)
