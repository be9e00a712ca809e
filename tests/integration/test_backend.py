"""The channel behind the MCP server, in this process."""

from pathlib import Path

import anyio

from harness_adapters.backend import Backend
from waiters.background import background_tasks

LIMIT_S = 30
SYNCHRONOUS_FULL = 2


async def test_what_a_server_accepts_survives_the_loss_of_power(tmp_path: Path) -> None:
    """Ours: the commit of a send or a hand-over is on the disk before anything is said of it."""
    backend = Backend(tmp_path / "channel" / "channel.db")
    async with background_tasks() as tasks:
        tasks.start_soon(backend.run)
        with anyio.fail_after(LIMIT_S):
            calls = await backend.calls()
            row = await calls.channel.database.read_one("PRAGMA synchronous")
    assert row is not None and row[0] == SYNCHRONOUS_FULL
