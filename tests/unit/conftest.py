"""One channel, and one process that has it open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.world import Channel, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def channel(world: World) -> AsyncIterator[Channel]:
    async with world.process() as channel:
        yield channel
