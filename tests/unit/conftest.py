"""One channel, and one process that has it open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.unit.world import Channel, World

settings.register_profile("agent-channel", deadline=None)  # a busy machine's pause is no fault of ours
settings.load_profile("agent-channel")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def channel(world: World) -> AsyncIterator[Channel]:
    async with world.process() as channel:
        yield channel
