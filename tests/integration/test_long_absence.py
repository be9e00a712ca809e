"""What is said of messages that wait for days, or that a session was given and left behind, and what is shown of
their age. Days pass by a clock of the test's."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from channel.delivery_states import Event, Policy
from channel.messages import HandOver, Outcome
from fakes.clock import FakeClock
from harness_adapters.codex.envelope import ORIGIN
from tests.another_session import ROOM, AnotherSession, ChannelView, open_view
from tests.codex_sessions import SENDER
from tests.integration.codex_world import World
from tests.integration.stuck_deliveries import COMMAND_LINE, stuck_deliveries
from waiters.status import at

SOON_S = 30
HOUR_S = 3_600
DAY_S = 24 * HOUR_S


@pytest.fixture
async def view(tmp_path: Path) -> AsyncIterator[ChannelView]:
    with anyio.fail_after(SOON_S):
        async with open_view(tmp_path / "channel" / "channel.db", FakeClock()) as view:
            yield view


def clock_of(view: ChannelView) -> FakeClock:
    clock = view.channel.clock
    assert isinstance(clock, FakeClock)
    return clock


async def two(view: ChannelView) -> tuple[AnotherSession, AnotherSession]:
    """The boss and the worker."""
    boss, worker = view.session("boss-session"), view.session("worker-session")
    await boss.join("boss")
    await worker.join("worker")
    return boss, worker


async def give(view: ChannelView, key: str) -> None:
    """Hand the next message to a session, which reads it."""
    address = f"session:{key}"
    lease = await view.channel.leases.take(address, view.channel.process.to_text(), "")
    pending = (await view.channel.deliveries.next_pending(address))[0]
    await view.channel.deliveries.record_hand_over(lease, Policy.MONITOR, [HandOver(pending.delivery_id, "0" * 64)])
    await view.channel.deliveries.record([Outcome(pending.delivery_id, Event.TAKEN)])
    await view.channel.leases.release(lease)


@pytest.mark.fault("F13")
async def test_a_send_to_a_role_offline_for_days_says_since_when_and_how_many_wait(view: ChannelView) -> None:
    boss, _ = await two(view)
    since = at(clock_of(view).now_ms())
    clock_of(view).advance(3 * DAY_S)
    for number in range(9):
        await boss.send(f"number {number}", "worker")

    tenth = await boss.send("the tenth", "worker")

    assert tenth["to"]["worker"]["waiter"] == f"offline since {since}, 10 waiting"
    again = await boss.join("boss")
    assert again["role_statuses"]["worker"] == f"offline since {since}, 10 waiting"


@pytest.mark.fault("F14")
async def test_who_takes_a_role_over_is_told_what_the_last_one_was_given_and_did_not_answer(view: ChannelView) -> None:
    boss, worker = await two(view)
    answered = (await boss.send("answered", "worker"))["id"]
    await give(view, "worker-session")
    await worker.send("done", "boss")
    first = (await boss.send("not answered", "worker"))["id"]
    await give(view, "worker-session")
    clock_of(view).advance(13 * HOUR_S)
    second = (await boss.send("nor this", "worker"))["id"]
    await give(view, "worker-session")
    waits = (await boss.send("not given yet", "worker"))["id"]
    clock_of(view).advance(2 * HOUR_S)

    joined = await view.session("another-session").join("worker")

    assert joined["unanswered"] == f"{first} from boss (15h), {second} from boss (2h)"
    assert joined["pending"] == 1
    assert answered < first < second < waits


@pytest.mark.fault("F14")
async def test_what_an_earlier_holder_left_is_told_to_the_next_until_somebody_answers(view: ChannelView) -> None:
    boss, _ = await two(view)
    sent = (await boss.send("not answered", "worker"))["id"]
    await give(view, "worker-session")

    second = view.session("second-session")
    assert (await second.join("worker"))["unanswered"] == f"{sent} from boss (<1m)"
    third = view.session("third-session")
    assert (await third.join("worker"))["unanswered"] == f"{sent} from boss (<1m)"
    await third.send("here is the answer", "boss")
    assert "unanswered" not in await view.session("fourth-session").join("worker")


async def test_a_session_that_joins_again_or_comes_first_is_told_of_nothing(view: ChannelView) -> None:
    boss, worker = await two(view)
    await boss.send("not answered", "worker")
    await give(view, "worker-session")

    assert "unanswered" not in await worker.join("worker")
    assert "unanswered" not in await view.session("new-session").join("tester")


@pytest.mark.fault("F46")
async def test_a_thread_sees_how_long_a_message_waited(world: World) -> None:
    await world.join()
    world.home.set_archived(world.thread, True)
    sent = await world.send("hi")
    await world.until_state(sent, "pending", detail="thread archived")
    world.clock.advance(15 * HOUR_S)
    world.home.set_archived(world.thread, False)

    await world.until_state(sent, "accepted")

    assert world.queued_texts() == [f"{sent} {ROOM} {SENDER} age=15h\n{ORIGIN}\nhi"]


@pytest.mark.fault("F46")
async def test_a_claude_session_sees_how_long_a_message_waited(tmp_path: Path) -> None:
    stuck = await stuck_deliveries(tmp_path)
    command = [*COMMAND_LINE, "--db", str(stuck.database), "monitor", "--session", "reviewer", "--pace", "off"]
    with anyio.fail_after(SOON_S):
        async with await anyio.open_process(command, env={"HOME": str(tmp_path)}, stderr=None) as streamer:
            assert streamer.stdout is not None
            assert await streamer.stdout.receive() == b"3 hall planner age=15h\n|Please review.\n"
            streamer.terminate()
