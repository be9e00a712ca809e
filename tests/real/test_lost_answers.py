"""The child that adds is killed between write and answer: no message is added twice, and none is lost silently.

The product runs in the test's own process, against the real Codex: its loops, receivers and transports. One
CODEX_HOME holds all threads; one half is loaded in an owner that runs what it finds, one half nowhere.
"""

import os
import random
import time
from collections import Counter
from contextlib import suppress

import anyio
import psutil
import pytest

from fakes.responses_api import ResponsesApi
from tests.another_session import AnotherSession, ChannelView, open_view
from tests.codex_sessions import SENDER, HurriedClock, thread_session
from tests.real.codex_client import AppServer
from tests.real.codex_home import POLL_S, CodexHome, command_line
from tests.real.codex_rig import app_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WAIT_S = 240
THREADS = 20
KILLS = 200
WRITTEN_S = 1.0
RUNS_S = 0.004  # most adds are answered after 2 to 5 ms
HURRY = 5.0
SEED = int(os.environ.get("AGENT_CHANNEL_SEED") or random.randrange(2**32))

_STATES = """
SELECT r.name, d.message_id, d.state FROM deliveries d JOIN roles r ON r.role_id = d.role_id
"""
_LOST = """
SELECT d.state, count(*) AS number FROM deliveries d JOIN delivery_events e USING (delivery_id)
WHERE e.event = 'answer_lost' GROUP BY d.state
"""
_UNDECIDED = "SELECT 1 FROM deliveries WHERE state IN ('pending', 'handed_over') LIMIT 1"


@pytest.mark.fault("F22")
async def test_a_child_killed_at_random_adds_nothing_twice_and_loses_nothing_in_silence(
    codex: CodexHome, responses_api: ResponsesApi, environment: None
):
    dice = random.Random(SEED)
    print(f"AGENT_CHANNEL_SEED={SEED}")
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as first:
            threads = {f"closed-{number}": await new_thread(codex, first) for number in range(THREADS // 2)}
        async with app_server(codex) as owner, open_view(codex.home / "ch" / "channel.db", HurriedClock(HURRY)) as view:
            threads |= {f"loaded-{number}": await new_thread(codex, owner) for number in range(THREADS // 2)}
            for name, thread in threads.items():
                pid = owner.process_id if name.startswith("loaded") else None
                session = thread_session(view, thread, codex.codex_home, codex.binary, owner_pid=pid)
                assert (await session.join(name))["waiter"] == "active"
            sender = view.session(SENDER)
            await sender.join(SENDER)
            killed = 0
            while killed < KILLS:
                killed += await kill_amid_adds(view, sender, list(threads), dice)
                await until_decided(view)
            places = await until_true(view, owner, threads)
            lost = {row["state"]: row["number"] for row in await view.channel.database.read(_LOST)}
    print(f"{killed} killed after an add was written; answers lost, by what became of their messages: {lost}")
    assert lost
    assert max(places.values()) == 1


async def new_thread(codex: CodexHome, owner: AppServer) -> str:
    thread = await owner.start_thread(codex.project)
    await owner.run_turn(thread, "hello")
    return thread


async def kill_amid_adds(view: ChannelView, sender: AnotherSession, names: list[str], dice: random.Random) -> int:
    """Send to all threads, and kill each child that was written an add; how many those are.

    The children are halted while the adds are written, and each then runs for a moment of its own.
    """
    children = [child for child in psutil.Process().children() if "--disable" in command_line(child)]
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.suspend()
    await sender.send("hello", names)
    with anyio.move_on_after(WRITTEN_S):  # one that was asked something else just then writes no add
        while await view.channel.database.read("SELECT 1 FROM deliveries WHERE state = 'pending'"):  # noqa: ASYNC110
            await anyio.sleep(POLL_S)
    written = len(await view.channel.database.read("SELECT 1 FROM deliveries WHERE state = 'handed_over'"))
    for child in children:
        with suppress(psutil.NoSuchProcess):  # its session was over, and ended it meanwhile
            child.resume()
            time.sleep(dice.uniform(0, RUNS_S))  # noqa: ASYNC251 (on time: nothing else may run in between)
            child.kill()
    return written


async def until_decided(view: ChannelView) -> None:
    """Wait until every message was handed over, and something is known of each hand-over."""
    while await view.channel.database.read(_UNDECIDED):  # noqa: ASYNC110 (waiters change them)
        await anyio.sleep(POLL_S)


async def until_true(view: ChannelView, owner: AppServer, threads: dict[str, str]) -> Counter[str]:
    """Wait until each state says where its message is; how often each key is in a queue or among the items."""
    while True:
        rows = await view.channel.database.read(_STATES)
        places: Counter[str] = Counter()
        for name, thread in threads.items():
            keys = [*await owner.queued_keys(thread), *await owner.item_keys(thread)]
            places.update(f"{name} {key}" for key in keys if key is not None)
        channel = await view.channel.membership.channel_id()
        found = {True: {"accepted", "seen"}, False: {"uncertain"}}
        if all(
            row["state"] in found[f"{row['name']} agent-channel:{channel}:{row['message_id']}" in places]
            for row in rows
        ):
            return places
        await anyio.sleep(POLL_S)
