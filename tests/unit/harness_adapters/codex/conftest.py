from collections.abc import AsyncIterator

import pytest

from tests.unit.harness_adapters.codex.conversation import Conversation, conversation


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    async with conversation() as played:
        yield played
