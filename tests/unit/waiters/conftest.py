"""A furnished room and a played harness of each policy."""

import pytest

from channel.delivery_states import Policy
from fakes.receiver import FakeReceiver
from tests.unit.waiters.rig import furnish
from tests.unit.world import Channel


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    """The boss (`ann`) and the worker, whose session is `thread`."""
    await furnish(channel)
    return channel


@pytest.fixture
def queue() -> FakeReceiver:
    return FakeReceiver(Policy.QUEUE)


@pytest.fixture
def monitor() -> FakeReceiver:
    return FakeReceiver(Policy.MONITOR)
