"""What happens at an unlucky moment of a real Codex: a turn's end, a slow or refusing hook, a killed owner.

The product runs in the test's own process, so that the test sees its rows, and may hurry its clock.
"""

import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from channel.database import Row
from fakes.responses_api import Hold, ModelRequest, Reply, ResponsesApi, say_ok
from tests.another_session import AnotherSession, ChannelView, open_view
from tests.codex_sessions import SENDER, HurriedClock, delivery_of, events_of, thread_session
from tests.real.codex_client import AppServer
from tests.real.codex_home import POLL_S, CodexHome, until
from tests.real.codex_rig import app_server

RACES = int(os.environ.get("AGENT_CHANNEL_RACES", "32"))
"""Between an add and a turn's end. AGENT_CHANNEL_RACES=504 by hand takes some minutes."""
WAIT_S = 120 + RACES
THREADS = 8
TURNS = RACES // THREADS
RACE_S = 0.05
HURRY = 10.0  # times as fast: the 30 s of grace take 3
LOOKS_WHILE_UNCERTAIN = 3

pytestmark = [pytest.mark.real, pytest.mark.timeout(WAIT_S + 60)]

HAND_OVER = ["sent", "hand_over_recorded", "answered"]


@asynccontextmanager
async def served_thread(
    codex: CodexHome, owner: AppServer, hurry: float = 1.0
) -> AsyncIterator[tuple[ChannelView, str, AnotherSession]]:
    """A joined thread of `owner`, and a sender."""
    async with open_view(codex.home / "channel" / "channel.db", HurriedClock(hurry)) as view:
        thread = await new_thread(codex, owner)
        await join(view, codex, owner, thread, "codex")
        sender = view.session(SENDER)
        await sender.join(SENDER)
        yield view, thread, sender


async def new_thread(codex: CodexHome, owner: AppServer) -> str:
    thread = await owner.start_thread(codex.project)
    await owner.run_turn(thread, "hello")
    return thread


async def join(view: ChannelView, codex: CodexHome, owner: AppServer, thread: str, name: str) -> None:
    session = thread_session(view, thread, codex.codex_home, codex.binary, owner_pid=owner.process_id)
    assert (await session.join(name))["waiter"] == "active"


async def until_state(view: ChannelView, message_id: int, state: str, looks: int = 0) -> Row:
    """Wait until the delivery is in this state, and was looked for so often since."""
    while True:
        row = await delivery_of(view, message_id)
        if (row["state"], row["looks"] >= looks) == (state, True):
            return row
        await anyio.sleep(POLL_S)


@pytest.mark.fault("F6")
async def test_a_message_that_meets_the_end_of_a_turn_starts_the_next(
    codex: CodexHome, responses_api: ResponsesApi, environment: None
):
    holds: dict[str, Hold] = {}

    def script(request: ModelRequest) -> Reply:
        return holds[request.thread_id] if request.last_user_text == "work" else say_ok(request)

    async def race(view: ChannelView, owner: AppServer, sender: AnotherSession, thread: str, name: str) -> None:
        for number in range(TURNS):
            holds[thread] = Hold()
            turn = await owner.start_turn(thread, "work")
            await responses_api.requests.wait_for(partial(asks_again, thread, number))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(release_at_random, holds[thread])
                await anyio.sleep(random.uniform(0, RACE_S))
                sent = await sender.send("hello", name)
            await responses_api.requests.wait_for(partial(is_shown, thread, sent["id"]))
            await owner.turn_completed(turn)

    def asks_again(thread: str, times: int, request: ModelRequest) -> bool:
        return request.thread_id == thread and request.user_texts.count("work") > times

    def is_shown(thread: str, message_id: int, request: ModelRequest) -> bool:
        return request.thread_id == thread and request.last_user_text.startswith(f"{message_id} ")

    async def release_at_random(hold: Hold) -> None:
        await anyio.sleep(random.uniform(0, RACE_S))
        hold.release()

    responses_api.script = script
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner, served_thread(codex, owner) as (view, first, sender):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(race, view, owner, sender, first, "codex")
                for number in range(1, THREADS):
                    thread = await new_thread(codex, owner)
                    await join(view, codex, owner, thread, f"codex-{number}")
                    tasks.start_soon(race, view, owner, sender, thread, f"codex-{number}")
            shown = [r.last_user_text for r in responses_api.requests.items if "another agent" in r.last_user_text]
    assert len(shown) == len(set(shown)) == THREADS * TURNS


@pytest.mark.fault("F49")
async def test_a_message_that_a_hook_holds_for_six_seconds_stays_accepted_and_is_then_seen(
    codex: CodexHome, responses_api: ResponsesApi, environment: None
):
    codex.configure(responses_api.url, prompt_hook="if grep -q 'another agent'; then touch hooked; sleep 6; fi")
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            await owner.trust_hooks(codex.project)
            async with served_thread(codex, owner) as (view, thread, sender):
                sent = await sender.send("hello", "codex")
                await until((codex.project / "hooked").exists)
                assert await owner.queued_keys(thread) == []
                await until_state(view, sent["id"], "seen")
                assert await events_of(view, sent["id"]) == [*HAND_OVER, "key_in_items_same_text"]


@pytest.mark.fault("F49")
async def test_a_message_that_a_hook_blocks_is_uncertain_after_the_grace_and_never_added_again(
    codex: CodexHome, responses_api: ResponsesApi, environment: None
):
    codex.configure(responses_api.url, prompt_hook="if grep -q 'another agent'; then echo no >&2; exit 2; fi")
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            await owner.trust_hooks(codex.project)
            async with served_thread(codex, owner, HURRY) as (view, thread, sender):
                sent = await sender.send("hello", "codex")
                await expect_uncertain_for_good(view, owner, thread, sent["id"])
    assert not any("another agent" in request.last_user_text for request in responses_api.requests.items)


@pytest.mark.fault("F20")
async def test_a_message_whose_owner_is_killed_between_queue_and_item_stays_uncertain(
    codex: CodexHome, responses_api: ResponsesApi, environment: None
):
    codex.configure(responses_api.url, prompt_hook="if grep -q 'another agent'; then touch hooked; sleep 60; fi")
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            await owner.trust_hooks(codex.project)
            async with served_thread(codex, owner, HURRY) as (view, thread, sender):
                sent = await sender.send("hello", "codex")
                await until((codex.project / "hooked").exists)
                os.kill(owner.process_id or 0, signal.SIGKILL)
                async with app_server(codex) as next_owner:
                    await next_owner.request("thread/resume", threadId=thread)
                    await expect_uncertain_for_good(view, next_owner, thread, sent["id"])
    assert not any("another agent" in request.last_user_text for request in responses_api.requests.items)


async def expect_uncertain_for_good(view: ChannelView, owner: AppServer, thread: str, message_id: int) -> None:
    """The key is nowhere; that makes the delivery uncertain after the grace, and nothing more."""
    row = await until_state(view, message_id, "uncertain", LOOKS_WHILE_UNCERTAIN)
    assert row["changed_at_ms"] - row["accepted_at_ms"] >= 30_000
    assert await events_of(view, message_id) == [*HAND_OVER, "key_in_neither_for_30_s"]
    assert await owner.queued_keys(thread) == []
    assert (await view.channel.leases.detail(row["address"])) == f"delivery uncertain: {message_id}"
