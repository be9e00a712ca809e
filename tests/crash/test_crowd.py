"""Many processes on one file, killed at random for some seconds; the campaign is `python -m tests.crash.crowd`."""

import random

import pytest

from tests.crash.crowd import run

pytestmark = pytest.mark.timeout(240)

SECONDS = 10


@pytest.mark.fault("F38")
async def test_eight_servers_and_eight_streamers_killed_at_random_lose_nothing_and_show_nothing_as_new_twice() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    report = await run(seed, SECONDS)
    assert report.holds, report
    assert report.kills and report.stored
