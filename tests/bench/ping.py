"""How soon the server answers a ping while calls wait for a locked database."""

import sqlite3
import time
from pathlib import Path

import anyio
from mcp_types import EmptyResult, PingRequest

from tests.bench import product
from tests.bench.figures import Figure, Limit, series
from tests.bench.product import FLOOR_SERVER, LEGACY, Home
from tests.bench.scale import Scale

PING_MS = Limit("at most", 50)
BETWEEN_S = 0.01


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    """The lock is held from before the first send until after the last ping.

    In the older era: the newer one has no ping.
    """
    home = Home(folder / "home")
    async with product.client(FLOOR_SERVER, home, LEGACY) as floor, product.sender(home, LEGACY) as client:
        lock = sqlite3.connect(home.database, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        of_floor, while_waiting = [], []
        async with anyio.create_task_group() as waiting:
            for _ in range(3):
                waiting.start_soon(client.call_tool, "send", {"text": "hello"})
            for _ in range(scale.pings):
                of_floor.append(await _ping_ms(floor))
                while_waiting.append(await _ping_ms(client))
                await anyio.sleep(BETWEEN_S)
            lock.execute("COMMIT")
            lock.close()
    return [
        series("floor: a server with no code of ours", of_floor, "ms"),
        series("ping while sends wait for a locked file", while_waiting, "ms", PING_MS),
    ]


async def _ping_ms(client: product.Client) -> float:
    began = time.perf_counter()
    await client.session.send_request(PingRequest(), EmptyResult)  # Client.send_ping warns that it goes
    return (time.perf_counter() - began) * 1_000
