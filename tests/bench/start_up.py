"""How long the server and the streamer take to start, and what the streamer needs of memory."""

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.bench import product
from tests.bench.figures import Figure, Limit, series
from tests.bench.product import FLOOR_READER, FLOOR_READER_WITH_ANYIO, FLOOR_SERVER, SERVER, STREAMER, Home
from tests.bench.scale import Scale

SERVER_OVER_FLOOR = 1.1
STREAMER_OVER_FLOOR = 1.3
LINE_BYTES_MAX = 1_000_000
LOOK_S = 0.001
MIB = 1024 * 1024

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "codex-mcp-client", "version": "0.171.0"},
}


async def measure_server(folder: Path, scale: Scale) -> list[Figure]:
    """From the spawn to the answer to `tools/list`, in the older era, which needs one more round."""
    home = Home(folder / "home")
    floor, ours = [], []
    for _ in range(scale.starts):
        floor.append(await _server_start_ms(FLOOR_SERVER, home))
        ours.append(await _server_start_ms(SERVER, home))
    of_floor = series("floor: a server with no code of ours", floor, "ms")
    limit = Limit("at most", SERVER_OVER_FLOOR * of_floor.value, f"{SERVER_OVER_FLOOR} x the floor")
    return [of_floor, series("server start", ours, "ms", limit)]


async def measure_streamer(folder: Path, scale: Scale) -> list[Figure]:
    """From the spawn to its word in the file (the lease; the floor's row), and its memory then.

    The floor with anyio says how much of the difference is ours: the streamer is built on it.
    """
    floor, with_anyio, ours = [], [], []
    for number in range(scale.starts):
        floor.append(await _floor_start(folder / f"floor-{number}", FLOOR_READER))
        with_anyio.append(await _floor_start(folder / f"anyio-{number}", FLOOR_READER_WITH_ANYIO))
        ours.append(await _streamer_start(folder / f"streamer-{number}"))
    figures = []
    for what, unit, of_floor, of_anyio, of_ours in zip(
        ("start", "start, processor time", "memory, resident"),
        ("ms", "ms", "MiB"),
        zip(*floor, strict=True),
        zip(*with_anyio, strict=True),
        zip(*ours, strict=True),
        strict=True,
    ):
        least = series(f"floor: asyncio + aiosqlite, {what}", of_floor, unit)
        limit = Limit("at most", STREAMER_OVER_FLOOR * least.value, f"{STREAMER_OVER_FLOOR} x the floor")
        figures += [
            least,
            series(f"floor: the same with anyio, {what}", of_anyio, unit),
            series(f"streamer {what}", of_ours, unit, limit),
        ]
    return figures


async def _server_start_ms(command: Sequence[str], home: Home) -> float:
    requests: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    began = time.perf_counter()
    process = await anyio.open_process(command, env=home.environment(), stdin=subprocess.PIPE, stderr=None)
    assert process.stdin is not None and process.stdout is not None
    async with process:  # ends it, if its stdin does not
        await process.stdin.send("".join(json.dumps(request) + "\n" for request in requests).encode())
        answers = BufferedByteReceiveStream(process.stdout)
        while b'"tools"' not in await answers.receive_until(b"\n", LINE_BYTES_MAX):
            pass
        took_ms = (time.perf_counter() - began) * 1_000
        await process.stdin.aclose()
        with anyio.move_on_after(product.END_S_MAX):
            await process.wait()
    return took_ms


async def _streamer_start(folder: Path) -> tuple[float, float, float]:
    home = Home(folder)
    async with product.reader(STREAMER, home, "session") as (streaming, harness):
        await product.join(home, harness, "session", "reader")
        return await _start(streaming, home.database, "SELECT 1 FROM waiters WHERE released_at_ms IS NULL")


async def _floor_start(folder: Path, command: Sequence[str]) -> tuple[float, float, float]:
    home = Home(folder)
    database, fifo = folder / "floor.db", folder / "fifo"
    os.mkfifo(fifo)
    # The file is there and in WAL mode, as the channel's is when a streamer starts.
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE readers (pid INTEGER PRIMARY KEY)")
    connection.close()
    async with product.reader([*command, str(database), str(fifo)], home) as (printing, _):
        return await _start(printing, database, "SELECT 1 FROM readers")


async def _start(reader: product.Reader, database: Path, is_there: str) -> tuple[float, float, float]:
    """Start it, and look until the query gives a row: milliseconds, those of the processor, MiB resident."""
    connection = sqlite3.connect(database)
    began = time.perf_counter()
    await reader.start()
    while connection.execute(is_there).fetchone() is None:  # noqa: ASYNC110 (another process writes it)
        await anyio.sleep(LOOK_S)
    took_ms = (time.perf_counter() - began) * 1_000
    connection.close()
    process = reader.process
    return took_ms, product.processor_s(process.pid) * 1_000, process.memory_info().rss / MIB
