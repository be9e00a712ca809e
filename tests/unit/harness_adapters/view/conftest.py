"""The view of a channel, asked without a socket."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from fakes.clock import FakeClock
from harness_adapters.composition import Channel, open_channel
from harness_adapters.view.app import view_app
from harness_adapters.view.feed import Feed
from harness_adapters.view.guard import TOKEN_HEADER
from harness_adapters.view.snapshots import Snapshots
from tests.integration.stuck_deliveries import Stuck, stuck_deliveries

PORT = 4321
TOKEN = "0123456789abcdef" * 2
ORIGIN = f"http://127.0.0.1:{PORT}"


@dataclass
class View:
    """`page`: asks as the view's own page does; `stranger`: without token and origin."""

    stuck: Stuck
    channel: Channel
    clock: FakeClock
    feed: Feed
    snapshots: Snapshots
    page: httpx2.AsyncClient
    stranger: httpx2.AsyncClient


@pytest.fixture
async def view(tmp_path: Path) -> AsyncIterator[View]:
    """Of what `stuck_deliveries` makes; its clock stands still, 15 hours later."""
    stuck = await stuck_deliveries(tmp_path)
    clock = FakeClock()
    async with open_channel(stuck.database, durable=False, clock=clock) as channel:
        snapshots = Snapshots(channel)
        feed = Feed(channel, snapshots)
        transport = httpx2.ASGITransport(app=view_app(channel, feed, snapshots, TOKEN, PORT))
        headers = {TOKEN_HEADER: TOKEN, "origin": ORIGIN, "sec-fetch-site": "same-origin"}
        async with (
            httpx2.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers) as page,
            httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as stranger,
        ):
            yield View(stuck, channel, clock, feed, snapshots, page, stranger)
