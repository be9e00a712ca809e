"""Fixtures that several integration tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.integration.codex_world import World, codex_world

SOON = 60.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A thread, a fake Codex, a channel and a clock, for at most SOON."""
    with anyio.fail_after(SOON):
        async with codex_world(tmp_path) as world:
            yield world
