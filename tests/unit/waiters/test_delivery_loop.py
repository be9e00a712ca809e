"""One waiter over a played harness, a real file and a clock moved by hand: the order of its steps, and what
becomes of a delivery at each outcome."""

import anyio
import pytest

from channel.delivery_states import Event, Policy
from channel.errors import LeaseLost
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
from tests.unit.waiters.rig import (
    WAIT_S,
    furnish,
    until_asleep,
    until_detail,
    until_state,
    until_step,
    waiter,
)
from tests.unit.world import Channel, World
from waiters.background import background_tasks
from waiters.delivery_loop import DeliveryLoop
from waiters.receiver import NotNow, ReceiverEnded, Unavailable
from waiters.retries import REST_S_MAX

DAY_S = 24 * 3_600


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    await furnish(channel)
    return channel


@pytest.fixture
def queue() -> FakeReceiver:
    return FakeReceiver(Policy.QUEUE)


@pytest.fixture
def monitor() -> FakeReceiver:
    return FakeReceiver(Policy.MONITOR)


async def send(channel: Channel, *texts: str) -> list[int]:
    return [(await channel.send("ann", "worker", text)).message_id for text in texts]


def written(receiver: FakeReceiver) -> list[int]:
    return [each.message_id for each in receiver.written.items]


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


class TestIdleness:
    """Nothing runs when there is nothing to do."""

    async def test_a_session_is_closed_after_a_minute_without_work_and_then_nothing_runs(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_IN_ITEMS}
        await send(hall, "one")
        async with waiter(hall, queue) as loop:
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_asleep(hall, CLOSES_AFTER_S)
            assert hall.clock.asleep() == [CLOSES_AFTER_S]

            hall.clock.advance(CLOSES_AFTER_S)
            await until_step(queue, "close")
            await anyio.wait_all_tasks_blocked()
            assert hall.clock.asleep() == []

            await send(hall, "two")
            loop.wake()
            await until_state(hall, 2, "accepted")
        assert queue.steps.items.count("open") == 2

    async def test_being_woken_for_nothing_does_not_keep_a_session_open(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        """Other processes renew their leases every 20 s, and each renewal wakes everyone at the next look."""
        async with waiter(hall, queue) as loop:
            for left_s in (60, 40, 20):
                await until_asleep(hall, left_s)
                hall.clock.advance(20)
                loop.wake()
            await until_step(queue, "close")

    async def test_a_monitor_keeps_its_session_and_has_no_timer(self, hall: Channel, monitor: FakeReceiver) -> None:
        await send(hall, "one")
        async with waiter(hall, monitor):
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_state(hall, 1, "seen")
            await anyio.wait_all_tasks_blocked()
            assert hall.clock.asleep() == []
            assert monitor.is_open


class TestLooking:
    """Look-ups of what is open."""

    async def test_an_accepted_delivery_is_looked_for_until_it_is_seen(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        await send(hall, "one")
        async with waiter(hall, queue):
            for number, look_s in enumerate((1, 2, 5, 10), start=1):
                await until_asleep(hall, look_s)
                hall.clock.advance(look_s)
                await until_step(queue, "look 1", number)
            queue.finds = {1: Event.KEY_IN_ITEMS}
            await until_asleep(hall, 10)
            hall.clock.advance(10)
            await until_state(hall, 1, "seen")

    async def test_a_look_that_says_nothing_is_not_repeated_at_once(self, hall: Channel, queue: FakeReceiver) -> None:
        queue.finds = {1: None}
        await send(hall, "one")
        async with waiter(hall, queue):
            for look_s in (1, 2, 5):
                await until_asleep(hall, look_s)
                hall.clock.advance(look_s)
            await until_asleep(hall, 10)
        assert queue.steps.items.count("look 1") == 3
        assert await hall.states() == {1: "accepted"}

    async def test_a_look_that_fails_closes_the_session_and_is_done_again_after_a_rest(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.look_fails.append(Unavailable("app-server unavailable: it has ended"))
        queue.finds = {1: Event.KEY_IN_ITEMS}
        await send(hall, "one")
        async with waiter(hall, queue):
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_step(queue, "close")
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_state(hall, 1, "seen")
        assert queue.steps.items.count("look 1") == 2

    @pytest.mark.fault("F34")
    async def test_a_clock_that_was_set_back_does_not_put_off_the_look(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_IN_ITEMS}
        await send(hall, "one")
        async with waiter(hall, queue):
            await until_asleep(hall, 1)
            hall.clock.set_wall_ms(hall.clock.now_ms() - 2 * DAY_S * 1_000)
            hall.clock.advance(1)
            await until_state(hall, 1, "seen")

    @pytest.mark.fault("F12")
    async def test_what_is_in_neither_place_for_thirty_seconds_is_uncertain_and_said_so(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_IN_NEITHER}
        await send(hall, "one")
        async with waiter(hall, queue):
            for look_s in (1, 2, 5, 10, 10):
                await until_asleep(hall, look_s)
                assert await hall.states() == {1: "accepted"}
                hall.clock.advance(look_s)
            await until_asleep(hall, 30)
            hall.clock.advance(30)
            await until_state(hall, 1, "uncertain")
            await until_detail(hall, "delivery uncertain: 1")
        assert written(queue) == [1]

    async def test_a_key_that_is_held_by_another_text_is_a_conflict_and_said_so(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_WITH_OTHER_TEXT}
        await send(hall, "one")
        async with waiter(hall, queue):
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_state(hall, 1, "conflict")
            await until_detail(hall, "key conflict: 1")
        assert written(queue) == [1]

    @pytest.mark.fault("F9")
    async def test_nothing_in_the_path_of_a_delivery_waits_for_a_sign_of_the_one_before(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        """A harness that answers adds and tells nothing else, ever."""
        queue.finds = {1: None, 2: None, 3: None}
        await send(hall, "one", "two", "three")
        async with waiter(hall, queue):
            await until_state(hall, 3, "accepted")
        assert written(queue) == [1, 2, 3]

    @pytest.mark.fault("F8")
    async def test_past_every_limit_the_role_survives_and_what_can_not_be_delivered_is_said(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_IN_NEITHER}
        await send(hall, "one")
        async with waiter(hall, queue) as loop:
            for _ in range(20):
                await until_asleep(hall)
                hall.clock.advance(100 * DAY_S)
            await until_state(hall, 1, "uncertain")
            await until_detail(hall, "delivery uncertain: 1")

            await send(hall, "two")
            loop.wake()
            await until_state(hall, 2, "accepted")
        assert [role.name for role in await hall.membership.roles_of("thread")] == ["worker"]


class TestTakeOver:
    """A waiter dies in the middle of a hand-over, and another takes its lease."""

    async def die_writing(self, world: World, hall: Channel, receiver: FakeReceiver) -> None:
        receiver.will(hanging(anyio.Event()))
        await send(hall, "one", "two")
        async with waiter(hall, receiver, process="p1"):
            with anyio.fail_after(WAIT_S):
                await receiver.written.next()
        world.dead.add("p1")
        assert (await hall.states())[1] == "handed_over"

    @pytest.mark.fault("F22")
    async def test_a_queue_delivery_is_uncertain_looked_for_first_and_never_handed_over_again(
        self, world: World, hall: Channel, queue: FakeReceiver
    ) -> None:
        await self.die_writing(world, hall, queue)
        queue.finds = {1: Event.KEY_IN_NEITHER}
        steps = len(queue.steps.items)

        async with waiter(hall, queue, process="p2"):
            await until_state(hall, 2, "accepted")

        assert [step for step in queue.steps.items[steps:] if step.startswith(("look", "write"))][:2] == [
            "look 1",
            "write 2",
        ]
        assert written(queue) == [1, 2]
        assert (await hall.states())[1] == "uncertain"
        assert ("waiter_died", "uncertain") in await hall.history(1)

    async def test_a_queue_delivery_that_is_found_is_accepted(
        self, world: World, hall: Channel, queue: FakeReceiver
    ) -> None:
        await self.die_writing(world, hall, queue)

        async with waiter(hall, queue, process="p2"):
            await until_state(hall, 1, "accepted")
            await until_detail(hall, "")
        assert written(queue).count(1) == 1

    @pytest.mark.fault("F1")
    async def test_a_printed_delivery_that_does_not_stand_in_the_transcript_is_printed_again_as_a_repeat(
        self, world: World, hall: Channel, monitor: FakeReceiver
    ) -> None:
        await self.die_writing(world, hall, monitor)
        monitor.finds = {1: Event.NOT_IN_TRANSCRIPT}

        async with waiter(hall, monitor, process="p2"):
            await until_state(hall, 2, "accepted")

        assert [(each.message_id, each.repeats) for each in monitor.written.items] == [(1, 0), (1, 1), (2, 0)]

    @pytest.mark.fault("F1")
    async def test_a_printed_delivery_that_stands_in_the_transcript_is_seen_and_not_printed_again(
        self, world: World, hall: Channel, monitor: FakeReceiver
    ) -> None:
        await self.die_writing(world, hall, monitor)

        async with waiter(hall, monitor, process="p2"):
            await until_state(hall, 2, "accepted")

        assert (await hall.states())[1] == "seen"
        assert written(monitor) == [1, 2]

    @pytest.mark.fault("F10")
    async def test_a_waiter_of_the_old_term_beside_one_of_the_new_hands_over_nothing(
        self, world: World, hall: Channel
    ) -> None:
        old, new = FakeReceiver(Policy.MONITOR), FakeReceiver(Policy.MONITOR)
        async with world.process() as other:
            old_loop = await self.idle(hall, old, "p1")
            world.dead.add("p1")  # so it is held to be, though its code still runs
            async with waiter(other, new, process="p2") as new_loop:
                await send(hall, "one", "two")
                with anyio.fail_after(WAIT_S), pytest.raises(LeaseLost):
                    await old_loop.run()
                new_loop.wake()
                await until_state(hall, 2, "accepted")

        assert written(old) == []
        assert written(new) == [1, 2]

    async def idle(self, channel: Channel, receiver: FakeReceiver, process: str) -> DeliveryLoop:
        lease = await channel.leases.take("thread", process, "")
        return DeliveryLoop(lease, receiver, channel.deliveries, channel.leases, channel.clock)

    @pytest.mark.fault("F10")
    async def test_a_lease_that_is_lost_in_the_middle_of_a_batch_stops_the_writing(
        self, world: World, hall: Channel
    ) -> None:
        receiver = FakeReceiver(Policy.MONITOR, at_once=3)
        taken = anyio.Event()
        receiver.will(hanging(taken))
        await send(hall, "one", "two", "three")
        loop = await self.idle(hall, receiver, "p1")

        async with world.process() as other:

            async def take_over() -> None:
                await until_step(receiver, "write 1")
                world.dead.add("p1")
                await other.leases.take("thread", "p2", "")
                taken.set()

            with anyio.fail_after(WAIT_S), pytest.raises(LeaseLost):
                async with background_tasks() as tasks:
                    tasks.start_soon(take_over)
                    await loop.run()

        assert written(receiver) == [1]


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
