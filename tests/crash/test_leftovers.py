"""SIGKILL of every kind of process, again and again: no process outlives those that needed it, and no file stays."""

from pathlib import Path

import anyio
import pytest

from tests.crash.checks import judge
from tests.crash.leftovers import KINDS, kill_each_kind, left_files, until_no_process_is_left
from tests.crash.world import crash_world
from tests.crash.zygote import zygote

pytestmark = pytest.mark.timeout(240)

TIMES = 2
"""`make kill-matrix` does it 50 times."""

LIMIT_S = 200
GONE_WITHIN_S = 5


@pytest.mark.fault("F24")
async def test_no_process_and_no_file_is_left_after_kills_of_each_kind(tmp_path: Path) -> None:
    async with zygote() as starter, crash_world(tmp_path / "world", starter) as world:
        with anyio.fail_after(LIMIT_S):
            killed = await kill_each_kind(world, TIMES)
        with anyio.fail_after(GONE_WITHIN_S):
            await until_no_process_is_left(world)
        assert killed == dict.fromkeys(KINDS, TIMES)
        assert list(left_files(world)) == []
        assert judge(world).holds
