"""What is stored of a Codex session at its tool calls."""

from pathlib import Path

import anyio

from tests.another_session import open_view
from tests.integration.harness_stand_in import harness_stand_in

LIMIT_S = 40


async def test_an_interpreter_is_not_stored_as_the_codex_to_start(tmp_path: Path) -> None:
    """A script that stands in for Codex: its process runs Python, which is no app-server."""
    database = tmp_path / "channel" / "channel.db"
    with anyio.fail_after(LIMIT_S):
        async with open_view(database) as view, harness_stand_in(tmp_path, database) as harness:
            await harness.join("codex")
            connection = await view.channel.membership.connection(harness.address)
    assert connection is not None
    assert connection["codex_path"] is None
