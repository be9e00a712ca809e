"""From the call of `send` to the line that the streamer prints, in an empty file and in a full one."""

import os
import random
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiosqlite
import anyio
from mcp import Client

from tests.bench import product
from tests.bench.figures import Figure, Limit, series
from tests.bench.product import FLOOR_READER, FLOOR_SERVER, Home, Reader
from tests.bench.scale import Scale

BETWEEN_S = 0.03
"""A pause after each measured thing, so that it finds every process asleep."""

BETWEEN_TURNS_S = 1.3
"""Messages come further apart than the pacing lets them, and the look a second after each is over before the next."""

WARM_UP = 3
FULL_OVER_EMPTY = 1.2

Measured = Callable[[], Awaitable[float]]


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    """Milliseconds. All four are measured in each turn, in an order that is drawn anew: the machine's other load hits
    them alike, and so does what was done just before, which leaves a processor warm or cold.
    """
    async with AsyncExitStack() as stack:
        measured: dict[str, Measured] = {
            "empty tool call": await stack.enter_async_context(_empty_call(folder / "call")),
            "commit, ring, read, print": await stack.enter_async_context(_row_to_line(folder / "row")),
            "send to line": await stack.enter_async_context(_send_to_line(folder / "empty", 0)),
            "send to line, full file": await stack.enter_async_context(
                _send_to_line(folder / "full", scale.handled_messages)
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in measured}
        for turn in range(WARM_UP + scale.round_trips):
            for name in random.sample(list(measured), len(measured)):
                taken_ms = await measured[name]()
                await anyio.sleep(BETWEEN_S)
                if turn >= WARM_UP:
                    times[name].append(taken_ms)
            await anyio.sleep(BETWEEN_TURNS_S)
    call, row = (series(f"floor: {name}", times[name], "ms") for name in list(measured)[:2])
    floors = Limit("at most", call.value + 2 * row.value, "the call + 2 x the row")
    line = series("send to line", times["send to line"], "ms", floors)
    full = series(
        f"send to line, {scale.handled_messages} handled messages",
        times["send to line, full file"],
        "ms",
        Limit("at most", FULL_OVER_EMPTY * line.value, f"{FULL_OVER_EMPTY} x the empty file"),
    )
    return [call, row, line, full]


@asynccontextmanager
async def _empty_call(folder: Path) -> AsyncGenerator[Measured]:
    async with product.client(FLOOR_SERVER, Home(folder)) as client:

        async def once() -> float:
            began = time.perf_counter()
            await client.call_tool("nothing_0", {})
            return _ms_since(began)

        yield once


@asynccontextmanager
async def _row_to_line(folder: Path) -> AsyncGenerator[Measured]:
    """A row that this process commits as durably as a message, and another reads and prints."""
    home = Home(folder)
    database, fifo = folder / "floor.db", folder / "fifo"
    os.mkfifo(fifo)
    async with product.reader([*FLOOR_READER, str(database), str(fifo)], home) as (printing, _):
        async with aiosqlite.connect(database, isolation_level=None) as connection:
            await connection.execute("PRAGMA journal_mode=WAL")
            await connection.execute("PRAGMA synchronous=FULL")
            await printing.start()
            bell = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
            while not await _reads(connection):  # noqa: ASYNC110 (another process begins to)
                await anyio.sleep(BETWEEN_S)

            async def once() -> float:
                began = time.perf_counter()
                await connection.execute_fetchall("INSERT INTO lines (text) VALUES ('hello')")
                os.write(bell, b"!")
                await printing.read()
                return _ms_since(began)

            yield once
            os.close(bell)


async def _reads(connection: aiosqlite.Connection) -> bool:
    try:
        return bool(list(await connection.execute_fetchall("SELECT pid FROM readers")))
    except sqlite3.OperationalError:  # the reader has not made its tables yet
        return False


@asynccontextmanager
async def _send_to_line(folder: Path, handled: int) -> AsyncGenerator[Measured]:
    home = Home(folder)
    async with product.streamer(home, "reader") as streaming, product.sender(home) as client:
        if handled:
            add_handled_messages(home.database, handled)

        async def once() -> float:
            return await _one_send(client, streaming)

        yield once


async def _one_send(client: Client, streaming: Reader) -> float:
    """Until the line stands, which may be before the call is answered."""
    line_ms = 0.0
    began = time.perf_counter()

    async def read_line() -> None:
        nonlocal line_ms
        line = await streaming.read()
        line_ms = _ms_since(began)
        streaming.show(line)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_line)
        await product.call(client, "send", text="hello", to="reader")
    return line_ms


def add_handled_messages(database: Path, count: int) -> None:
    """Messages that were sent to `reader`, given and seen, as many a day as a busy room has."""
    with sqlite3.connect(database) as connection:
        room, sender, reader, address = connection.execute(
            "SELECT r.room_id, s.role_id, r.role_id, c.address FROM roles r JOIN roles s ON s.name = 'sender' "
            "JOIN connections c ON c.connection_id = r.connection_id WHERE r.name = 'reader'"
        ).fetchone()
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)"
        given = {"count": count, "room": room, "sender": sender, "reader": reader, "address": address}
        connection.execute(
            f"{numbers} INSERT INTO messages (room_id, sender_role_id, sender, text, created_at_ms) "
            "SELECT :room, :sender, 'sender', 'handled long ago ' || i, i FROM n",
            given,
        )
        connection.execute(
            "INSERT INTO deliveries (message_id, role_id, changed_at_ms, policy, address, place, text_sha256, term) "
            "SELECT message_id, :reader, 1, 'monitor', :address, '', '', 0 FROM messages "
            "WHERE text LIKE 'handled long ago %'",
            given,
        )
        for state in ("handed_over", "accepted", "seen"):
            connection.execute("UPDATE deliveries SET state = ? WHERE place = ''", (state,))
    connection.close()


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1_000
