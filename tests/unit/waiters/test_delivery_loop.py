"""One waiter over a played harness, a real file and a clock moved by hand: the order of its steps, and what
becomes of a delivery at each outcome.

Over 400 lines: one class, and one order of steps, broken off at each of them.
"""

import anyio
import pytest

from channel.decisions import Decisions
from channel.delivery_states import Event, Policy
from fakes.receiver import (
    CLOSES_AFTER_S,
    FakeReceiver,
    answer_lost,
    answered,
    hanging,
    harness_ended,
    no_outcome,
    not_written,
    refused,
)
from tests.unit.waiters.rig import WAIT_S, send, until_asleep, until_detail, until_state, until_step, waiter, written
from tests.unit.world import Channel, World
from waiters.delivery_loop import DeliveryLoop
from waiters.receiver import NotNow, ReceiverEnded, Unavailable
from waiters.retries import REST_S_MAX


async def test_the_session_is_open_before_the_hand_over_and_the_hand_over_committed_before_the_write(
    world: World, hall: Channel, queue: FakeReceiver
) -> None:
    answer = anyio.Event()
    queue.will(hanging(answer))
    (message,) = await send(hall, "one")

    async with waiter(hall, queue), world.process() as other:
        with anyio.fail_after(WAIT_S):
            await queue.written.next()

        assert queue.steps.items[0] == "open" and queue.steps.items[-2:] == ["ready", f"write {message}"]
        assert await other.states() == {message: "handed_over"}  # another process reads what is committed
        answer.set()
        await until_state(other, message, "accepted")


async def test_messages_are_handed_over_in_the_order_of_sending_one_at_a_time(
    hall: Channel, queue: FakeReceiver
) -> None:
    messages = await send(hall, *"abcdef")

    async with waiter(hall, queue):
        await until_state(hall, messages[-1], "accepted")

    assert written(queue) == messages
    assert [each.text for each in queue.written.items] == list("abcdef")


async def test_what_is_withdrawn_while_the_session_gets_ready_is_not_written(hall: Channel) -> None:
    """Only what the hand-over's own transaction still found waiting goes out."""
    monitor = FakeReceiver(Policy.MONITOR, at_once=2)
    async with waiter(hall, monitor) as loop:
        await until_step(monitor, "ready")
        first, second = await send(hall, "one", "two")
        dropped = (await hall.deliveries.next_pending("thread"))[0].delivery_id
        monitor.while_getting_ready = lambda: Decisions(hall.database, hall.clock).drop(dropped)
        loop.wake()
        await until_state(hall, second, "accepted")

    assert written(monitor) == [second]
    assert (await hall.states())[first] == "withdrawn"


async def test_a_refusal_rests_the_address_so_that_later_messages_wait_and_the_order_is_kept(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.will(refused("queue full: 100 messages"))
    messages = await send(hall, "one", "two", "three")

    async with waiter(hall, queue):
        await until_asleep(hall, 1)
        assert [row["detail"] for row in [await hall.row(number) for number in (1, 2, 3)]] == [
            "queue full: 100 messages"
        ] * 3
        assert set((await hall.states()).values()) == {"pending"}
        assert await hall.leases.detail("thread") == "queue full: 100 messages"
        assert written(queue) == []

        hall.clock.advance(1)
        await until_state(hall, messages[-1], "accepted")
        assert await hall.leases.detail("thread") == ""
    assert written(queue) == messages


async def test_the_rests_grow_up_to_a_minute_and_begin_anew_after_a_success(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(*[refused("queue full")] * 8, answered(), refused("queue full"))
    await send(hall, "one", "two")

    async with waiter(hall, queue):
        for rest_s in (1, 2, 4, 8, 16, 32, REST_S_MAX, REST_S_MAX):
            await until_asleep(hall, rest_s)
            hall.clock.advance(rest_s)
        await until_asleep(hall, 1)  # the second message, refused after the first was taken
        assert written(queue) == [1]


async def test_a_new_message_does_not_end_a_rest(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(refused("queue full"))
    await send(hall, "one")
    async with waiter(hall, queue) as loop:
        await until_asleep(hall, 1)
        ready = queue.steps.items.count("ready")
        await send(hall, "two")
        loop.wake()
        await until_asleep(hall, 1)

        assert queue.steps.items.count("ready") == ready
        assert written(queue) == []


@pytest.mark.fault("F22")
async def test_a_lost_answer_leaves_the_delivery_uncertain_and_it_is_never_handed_over_again(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.will(answer_lost())
    queue.finds = {1: Event.KEY_IN_NEITHER}
    await send(hall, "one")

    async with waiter(hall, queue):
        await until_state(hall, 1, "uncertain")
        for look in range(30):
            await until_step(queue, "look 1", look)
            with anyio.fail_after(WAIT_S):
                await hall.clock.until_asleep()
            hall.clock.advance(600)
        assert await hall.leases.detail("thread") == "delivery uncertain: 1"

    assert written(queue) == [1]
    assert await hall.states() == {1: "uncertain"}


async def test_later_messages_go_on_while_one_is_uncertain(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(answer_lost())
    queue.finds = {1: Event.KEY_IN_NEITHER}
    await send(hall, "one", "two", "three")

    async with waiter(hall, queue):
        await until_state(hall, 3, "accepted")

    assert written(queue) == [1, 2, 3]
    assert await hall.states() == {1: "uncertain", 2: "accepted", 3: "accepted"}


async def test_a_stream_of_messages_does_not_put_off_a_look_that_is_due(hall: Channel, queue: FakeReceiver) -> None:
    answer = anyio.Event()
    queue.will(answered(), hanging(answer))
    first, second, third = await send(hall, "one", "two", "three")

    async with waiter(hall, queue):
        await until_step(queue, f"write {second}")
        hall.clock.advance(2)
        answer.set()
        await until_state(hall, third, "accepted")

    steps = queue.steps.items
    assert steps.index(f"look {first}") < steps.index(f"write {third}")


async def test_a_late_answer_is_evidence(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(answer_lost())
    await send(hall, "one")

    async with waiter(hall, queue):
        await until_state(hall, 1, "uncertain")
        queue.answer_late(1)
        await until_state(hall, 1, "accepted")
        await until_detail(hall, "")

    assert written(queue) == [1]


async def test_a_late_refusal_is_evidence_that_nothing_was_added(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(answer_lost())
    await send(hall, "one")

    async with waiter(hall, queue):
        await until_state(hall, 1, "uncertain")
        queue.answer_late(1, Event.REFUSED_WITHOUT_EFFECT)
        await until_state(hall, 1, "accepted")

    assert written(queue) == [1, 1]


async def test_a_harness_that_takes_nothing_now_keeps_the_session_and_its_look_ups(
    hall: Channel, queue: FakeReceiver
) -> None:
    await send(hall, "one")
    async with waiter(hall, queue) as loop:
        await until_state(hall, 1, "accepted")
        await until_asleep(hall, 1)
        queue.not_ready.extend([NotNow("thread archived")] * 2)
        await send(hall, "two")
        loop.wake()
        await until_detail(hall, "thread archived")
        assert (await hall.row(2))["detail"] == "thread archived"

        await until_asleep(hall, 1)
        hall.clock.advance(1)  # the rest is over, and the first look falls due
        await until_step(queue, "look 1")
        await until_asleep(hall, 2)
        hall.clock.advance(2)
        await until_state(hall, 2, "accepted")
        await until_detail(hall, "")
    assert queue.steps.items.count("open") == 1
    assert written(queue) == [1, 2]


async def test_a_harness_that_can_not_be_reached_is_tried_again_at_growing_intervals(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.open_fails.extend([Unavailable("app-server unavailable: no codex on PATH")] * 3)
    await send(hall, "one")

    async with waiter(hall, queue) as loop:
        with anyio.fail_after(WAIT_S):
            await loop.first_attempt.wait()
        for rest_s in (1, 2, 4):
            await until_asleep(hall, rest_s)
            assert await hall.leases.detail("thread") == "app-server unavailable: no codex on PATH"
            assert await hall.states() == {1: "pending"}
            hall.clock.advance(rest_s)
        await until_state(hall, 1, "accepted")
        await until_detail(hall, "")
    assert written(queue) == [1]


@pytest.mark.fault("F51")
async def test_what_was_not_written_is_pending_and_not_uncertain_and_goes_out_once(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.will(not_written("app-server unavailable: the socket was dead"))
    await send(hall, "one")

    async with waiter(hall, queue):
        await until_asleep(hall, 2)  # the failed write and the failed session
        assert await hall.states() == {1: "pending"}
        assert await hall.leases.detail("thread") == "app-server unavailable: the socket was dead"
        hall.clock.advance(2)
        await until_state(hall, 1, "accepted")

    assert written(queue) == [1]
    assert [event for event, _ in await hall.history(1)] == [
        "sent",
        "hand_over_recorded",
        "not_written",
        "hand_over_recorded",
        "answered",
    ]


async def test_a_session_that_fails_without_an_outcome_leaves_it_uncertain_and_looked_for(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.will(no_outcome())
    await send(hall, "one", "two")

    async with waiter(hall, queue):
        await until_asleep(hall, 1)
        hall.clock.advance(1)
        await until_state(hall, 2, "accepted")
        await until_asleep(hall, 1)
        hall.clock.advance(10)
        await until_state(hall, 1, "accepted")  # found in the queue

    assert written(queue) == [1, 2]
    assert ("answer_lost", "uncertain") in await hall.history(1)


async def test_the_end_of_the_harness_ends_the_waiter(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(harness_ended())
    await send(hall, "one")
    lease = await hall.leases.take("thread", "p1", "")
    loop = DeliveryLoop(lease, queue, hall.deliveries, hall.leases, hall.clock)

    with anyio.fail_after(WAIT_S), pytest.raises(ReceiverEnded):
        await loop.run()
    assert not queue.is_open


async def test_what_goes_out_together_is_recorded_together(hall: Channel) -> None:
    receiver = FakeReceiver(Policy.MONITOR, at_once=3)
    await send(hall, "one", "two", "three")

    async with waiter(hall, receiver):
        await until_state(hall, 3, "accepted")

    assert receiver.steps.items[:6] == ["open", "ready", "ready", "write 1", "write 2", "write 3"]
    assert await hall.states() == {1: "accepted", 2: "accepted", 3: "accepted"}


async def test_a_receivers_remark_is_said_when_all_is_well(hall: Channel, queue: FakeReceiver) -> None:
    queue.remark = "versions differ: 0.170.0 and 0.171.0"
    async with waiter(hall, queue):
        await until_detail(hall, "versions differ: 0.170.0 and 0.171.0")


class TestTheEnd:
    """Stopping, and serving until there is nothing to do."""

    async def test_stopping_waits_for_what_is_being_written_and_begins_nothing_new(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        answer = anyio.Event()
        queue.will(hanging(answer))
        await send(hall, "one", "two")
        loop = DeliveryLoop(await hall.leases.take("thread", "p1", ""), queue, hall.deliveries, hall.leases, hall.clock)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(loop.run)
                await queue.written.next()
                loop.stop()
                assert loop.is_stopping
                answer.set()

        assert await hall.states() == {1: "accepted", 2: "pending"}
        assert not queue.is_open

    @pytest.mark.parametrize("policy", Policy)
    async def test_an_idle_waiter_stops_at_once(self, hall: Channel, policy: Policy) -> None:
        receiver = FakeReceiver(policy)
        loop = DeliveryLoop(
            await hall.leases.take("thread", "p1", ""), receiver, hall.deliveries, hall.leases, hall.clock
        )
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(loop.run)
                await loop.first_attempt.wait()
                loop.stop()

    async def test_until_idle_ends_when_nothing_is_to_be_done(self, hall: Channel, queue: FakeReceiver) -> None:
        queue.finds = {1: Event.KEY_IN_ITEMS}
        await send(hall, "one")
        loop = DeliveryLoop(await hall.leases.take("thread", "p1", ""), queue, hall.deliveries, hall.leases, hall.clock)

        async def run() -> None:
            await loop.run(until_idle=True)

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await until_asleep(hall, 1)
                hall.clock.advance(1)
                await until_state(hall, 1, "seen")
                await until_asleep(hall)
                hall.clock.advance(CLOSES_AFTER_S)

        assert await hall.states() == {1: "seen"}
        assert queue.steps.items[-1] == "close"
