"""Fixtures that several integration tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from harness_adapters.composition import Channel, open_channel
from tests.integration.codex_world import World, codex_world
from tests.integration.stuck_deliveries import Stuck, stuck_deliveries

SOON = 60.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A thread, a fake Codex, a channel and a clock, for at most SOON."""
    with anyio.fail_after(SOON):
        async with codex_world(tmp_path) as world:
            yield world


@pytest.fixture
async def stuck(tmp_path: Path) -> Stuck:
    return await stuck_deliveries(tmp_path)


@pytest.fixture
async def channel(stuck: Stuck) -> AsyncIterator[Channel]:
    """The same file, open in the test."""
    async with open_channel(stuck.database, durable=False, create=False) as channel:
        yield channel
