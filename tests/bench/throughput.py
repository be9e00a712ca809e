"""Sends a second, one after the other: at the store in this process, and through MCP."""

import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiosqlite

from channel.membership import Caller
from harness_adapters.composition import open_channel
from tests.bench import product
from tests.bench.figures import Figure, Limit, series
from tests.bench.product import FLOOR_SERVER, ROOM, Home
from tests.bench.scale import Scale
from waiters.processes import own_identity

STORE_SENDS_A_S = Limit("at least", 1_500)
MCP_SENDS_A_S = Limit("at least", 200)
LAST_OVER_FIRST = 1.2
BATCHES = 20
"""All are measured in turn, batch by batch, so that the machine's other load hits them alike."""

Call = Callable[[], Awaitable[object]]


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    async with AsyncExitStack() as stack:
        floor_call, send_call = await stack.enter_async_context(_through_mcp(folder))
        calls: dict[str, tuple[Call, int, Limit | None]] = {
            "floor: rows, each synced to disk": (
                await stack.enter_async_context(_rows(folder)),
                scale.sends_at_the_store,
                None,
            ),
            "sends at the store, each synced to disk": (
                await stack.enter_async_context(_at_the_store(folder, durable=True)),
                scale.sends_at_the_store,
                None,
            ),
            "sends at the store, not synced": (
                await stack.enter_async_context(_at_the_store(folder, durable=False)),
                scale.sends_at_the_store,
                STORE_SENDS_A_S,
            ),
            "floor: empty tool calls": (floor_call, scale.sends_through_mcp, None),
            "sends through MCP, each synced to disk": (send_call, scale.sends_through_mcp, MCP_SENDS_A_S),
        }
        rates: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(BATCHES):
            for name, (call, times, _limit) in calls.items():
                rates[name].append(await _calls_a_s(times // BATCHES, call))
    figures = [series(name, rates[name], "/s", limit) for name, (_, _, limit) in calls.items()]
    return [*figures, _last_over_first(*list(rates.values())[-2:])]


def _last_over_first(floor: list[float], sends: list[float]) -> Figure:
    """How much longer a send takes in the last tenth than in the first, each over the empty calls beside it."""
    over_floor = [of_floor / of_send for of_floor, of_send in zip(floor, sends, strict=True)]
    tenth = BATCHES // 10
    grown = statistics.mean(over_floor[-tenth:]) / statistics.mean(over_floor[:tenth])
    return Figure(
        "a send through MCP, last tenth over first", grown, "x", count=tenth, limit=Limit("at most", LAST_OVER_FIRST)
    )


@asynccontextmanager
async def _rows(folder: Path) -> AsyncGenerator[Call]:
    async with aiosqlite.connect(folder / "floor.db", isolation_level=None) as connection:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE lines (text TEXT)"):
            await connection.execute(statement)
        yield lambda: connection.execute_fetchall("INSERT INTO lines VALUES ('hello')")


@asynccontextmanager
async def _at_the_store(folder: Path, *, durable: bool) -> AsyncGenerator[Call]:
    process = own_identity().to_text()
    async with open_channel(folder / f"durable-{durable}" / "channel.db", durable=durable) as channel:
        for name in ("sender", "reader"):
            await channel.membership.join(Caller(name, "claude", process, process), ROOM, name, None)
        yield lambda: channel.sending.send("sender", "hello", ["reader"], None)


@asynccontextmanager
async def _through_mcp(folder: Path) -> AsyncGenerator[tuple[Call, Call]]:
    """The empty call, and the send: to a role that is offline, so that all stay in the file."""
    home = Home(folder / "mcp")
    async with product.client(FLOOR_SERVER, home) as floor, product.sender(home) as client:
        async with product.reader(["/bin/true"], home, "session-of-reader") as (_, harness):
            await product.join(home, harness, "session-of-reader", "reader")
            yield (
                lambda: floor.call_tool("nothing_0", {}),
                lambda: product.call(client, "send", text="hello", to="reader"),
            )


async def _calls_a_s(times: int, call: Call) -> float:
    began = time.perf_counter()
    for _ in range(times):
        await call()
    return times / (time.perf_counter() - began)
