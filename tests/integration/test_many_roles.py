"""A room that hundreds of sessions joined and never left: an answer stays short, and names those that are there."""

import json
from pathlib import Path

from channel.membership import Caller
from harness_adapters.callers import OTHER_HARNESS
from harness_adapters.claude.addresses import keyed_address
from harness_adapters.tool_calls import ROLES_SHOWN_MAX
from tests.another_session import open_view
from waiters.processes import boot_id, pid_namespace

GONE = f"{2**30}.1.{pid_namespace()}.{boot_id()}"
"""No process: Linux gives no pid so large."""

SESSIONS = 300
ANSWER_CHARACTERS_MAX = 20_000
"""A quarter of what Claude Code takes of a tool (25,000 tokens)."""


async def test_answers_in_a_room_of_hundreds_of_roles_are_short_and_name_the_live_ones_first(tmp_path: Path) -> None:
    async with open_view(tmp_path / "channel.db") as channel:
        for number in range(SESSIONS):
            gone = Caller(keyed_address(f"gone{number}"), OTHER_HARNESS, GONE, GONE)
            await channel.session_of(gone).join(f"{number:03d}" + "x" * 100)
        await channel.session("ann").join("ann")
        joined = await channel.session("bob").join("bob")
        names = [f"{number:03d}" + "x" * 100 for number in range(100)]
        sent = await channel.session("bob").send("hello", [*names, "ann"])

    assert joined["registered_roles"] == ["ann", "bob"]
    assert next(iter(joined["role_statuses"])) == "ann"
    assert joined["more_roles"] == SESSIONS + 2 - ROLES_SHOWN_MAX
    assert joined["command"]
    assert len(json.dumps(joined)) < ANSWER_CHARACTERS_MAX
    assert next(iter(sent["to"])) == "ann"
    assert sent["more_recipients"] == 101 - ROLES_SHOWN_MAX
    assert len(json.dumps(sent)) < ANSWER_CHARACTERS_MAX
