"""Sends a second: at the store in this process, and through MCP one after the other."""

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiosqlite

from channel.membership import Caller
from harness_adapters.composition import open_channel
from tests.bench import product
from tests.bench.figures import Figure, Limit
from tests.bench.product import FLOOR_SERVER, ROOM, Home
from tests.bench.scale import Scale

STORE_SENDS_A_S = Limit("at least", 1_500)
MCP_SENDS_A_S = Limit("at least", 200)
LAST_OVER_FIRST = Limit("at most", 1.2, "the last tenth over the first")

Call = Callable[[], Awaitable[object]]


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    return [
        await _rows(folder, scale),
        await _at_the_store(folder, scale, durable=True),
        await _at_the_store(folder, scale, durable=False),
        *await _through_mcp(folder, scale),
    ]


async def _rows(folder: Path, scale: Scale) -> Figure:
    """The floor of a durable send: one row, one commit, one fsync."""
    async with aiosqlite.connect(folder / "floor.db", isolation_level=None) as connection:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE lines (text TEXT)"):
            await connection.execute(statement)
        taken_s = await _each(
            scale.sends_at_the_store, lambda: connection.execute_fetchall("INSERT INTO lines VALUES ('hello')")
        )
    return Figure("floor: rows, each synced to disk", len(taken_s) / sum(taken_s), "/s", count=len(taken_s))


async def _at_the_store(folder: Path, scale: Scale, *, durable: bool) -> Figure:
    callers = [Caller(name, "claude", f"{name}-process", f"{name}-server") for name in ("sender", "reader")]
    async with open_channel(folder / str(durable) / "channel.db", durable=durable) as channel:
        for caller in callers:
            await channel.membership.join(caller, ROOM, caller.address, None)
        taken_s = await _each(
            scale.sends_at_the_store, lambda: channel.sending.send("sender", "hello", ["reader"], None)
        )
    synced = "each synced to disk" if durable else "not synced"
    limit = None if durable else STORE_SENDS_A_S
    return Figure(f"sends at the store, {synced}", len(taken_s) / sum(taken_s), "/s", count=len(taken_s), limit=limit)


async def _through_mcp(folder: Path, scale: Scale) -> list[Figure]:
    """By one client, each after the answer to the last; to a role that is offline, so that all stay in the file."""
    home = Home(folder / "mcp")
    async with product.client(FLOOR_SERVER, home) as floor, product.sender(home) as client:
        other = product.identity_of(1)
        assert other is not None
        await product.join(home, other, "session-of-reader", "reader")
        floor_s = await _each(scale.sends_through_mcp // 4, lambda: floor.call_tool("nothing_0", {}))
        taken_s = await _each(scale.sends_through_mcp, lambda: product.call(client, "send", text="hello", to="reader"))
    tenth = len(taken_s) // 10
    last_over_first = statistics.median(taken_s[-tenth:]) / statistics.median(taken_s[:tenth])
    return [
        Figure("floor: empty tool calls", len(floor_s) / sum(floor_s), "/s", count=len(floor_s)),
        Figure("sends through MCP", len(taken_s) / sum(taken_s), "/s", count=len(taken_s), limit=MCP_SENDS_A_S),
        Figure("sends through MCP grow slower", last_over_first, "x", count=tenth, limit=LAST_OVER_FIRST),
    ]


async def _each(times: int, call: Call) -> list[float]:
    """Seconds of each call."""
    taken_s = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        taken_s.append(time.perf_counter() - began)
    return taken_s
