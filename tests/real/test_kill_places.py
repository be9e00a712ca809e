"""The server that serves a real Codex thread dies at each of its places: nothing added twice, nothing lost in silence.

One thread, loaded in an app-server that runs what it finds. Each death leaves its message to the next server.
"""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from fakes.responses_api import ResponsesApi
from tests.crash import places
from tests.crash.cases import Case
from tests.crash.world import CODEX_ROLE, World, crash_world
from tests.crash.zygote import zygote
from tests.real.codex_client import AppServer
from tests.real.codex_home import POLL_S, CodexHome
from tests.real.codex_rig import app_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WAIT_S = 240
LIFE_S = 20
"""A server that comes to no place where it dies has done all its work by then."""


@pytest.mark.fault("F22")
async def test_wherever_a_server_dies_a_real_thread_gets_each_message_once_or_its_delivery_says_so(
    codex: CodexHome, responses_api: ResponsesApi, tmp_path: Path
) -> None:
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner, zygote() as starter:
            thread = await owner.start_thread(codex.project)
            await owner.run_turn(thread, "hello")
            codex_side = (codex.binary, codex.codex_home, thread)
            async with crash_world(tmp_path / "world", starter, codex_side) as world:
                found = await _places(world)
                died = [await _server_dies(world, place) for place in found]
                async with world.server():
                    places_of_keys = await _until_true(world, owner, thread)
    assert all(died)
    assert max(places_of_keys.values()) == 1


async def _places(world: World) -> list[str]:
    await world.send("nothing happens to this", CODEX_ROLE)
    async with world.server() as server:
        await world.until(lambda rows: all(row["state"] == "seen" for row in rows))
    return [
        place
        for place in places.first_passings(places.walked("queue", server.trace.passings()))
        if "release" not in place
    ]


async def _server_dies(world: World, place: str) -> bool:
    await world.send(place, CODEX_ROLE)
    case = Case("queue", (f"{place}:die",))
    async with world.server(case.faults[0]) as victim:
        with anyio.move_on_after(LIFE_S):
            while victim.lives:  # noqa: ASYNC110 - it tells nobody
                await anyio.sleep(POLL_S)
    return victim.trace.was_hit


async def _until_true(world: World, owner: AppServer, thread: str) -> Counter[str]:
    """Wait until each state says where its message is; how often each key is in the queue or among the items."""
    while True:
        keys = [key for key in [*await owner.queued_keys(thread), *await owner.item_keys(thread)] if key is not None]
        there = {int(key.rpartition(":")[2]) for key in keys}
        rows = await world.rows()
        if all(row["state"] in ({"accepted", "seen"} if row["message_id"] in there else {"uncertain"}) for row in rows):
            return Counter(keys)
        await anyio.sleep(POLL_S)
