"""How long a person waits for a command: from its start to its end, on a file with a conversation in it."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from tests.bench.figures import Figure, Limit, series
from tests.bench.growth import fill, opened
from tests.bench.product import PYTHON, Home
from tests.bench.scale import Scale

OVER_FLOOR = 2.5
"""0.2 s where the floor takes 0.08 s."""

FLOOR = [*PYTHON, "-c", "import asyncio, aiosqlite"]

COMMANDS = {
    "--help": ["--help"],
    "rooms": ["rooms"],
    "who": ["who"],
    "history": ["history", "bench"],
    "history --search": ["history", "bench", "--search", "nowhere"],
    "send": ["send", "bench", "reader", "hello"],
    "invite": ["invite", "bench", "guest"],
    "message": ["message", "1"],
    "deliveries": ["deliveries"],
    "deliveries show": ["deliveries", "show", "1"],
    "trim --dry-run": ["trim", "--older-than", "1m", "--dry-run"],
}


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    """In turn, so that what else runs hits all alike."""
    home = Home(folder / "home")
    async with opened(home.database):
        fill(home.database, scale.pings)
    times: dict[str, list[float]] = {name: [] for name in ("", *COMMANDS)}
    for _ in range(scale.starts):
        times[""].append(await _run_ms(FLOOR, home))
        for name, arguments in COMMANDS.items():
            times[name].append(await _run_ms([sys.executable, "-I", "-m", "harness_adapters.cli", *arguments], home))
    floor = series("floor: python -c 'import asyncio, aiosqlite'", times.pop(""), "ms")
    limit = Limit("at most", OVER_FLOOR * floor.value, f"{OVER_FLOOR} x the floor")
    return [floor, *(series(f"agent-channel {name}", values, "ms", limit) for name, values in times.items())]


async def _run_ms(command: Sequence[str], home: Home) -> float:
    began = time.perf_counter()
    await anyio.run_process(command, env=home.environment(), stdin=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1_000
