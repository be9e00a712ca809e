"""What a waiter does when nothing is to be handed over: it looks for what is open, or does nothing at all."""

import anyio
import pytest

from channel.decisions import Decisions
from channel.deliveries import AFTER_WITHDRAWAL
from channel.delivery_states import Event
from channel.look_schedule import LOOK_S_MAX
from fakes.receiver import CLOSES_AFTER_S, FakeReceiver, answer_lost
from tests.unit.waiters.rig import send, until_asleep, until_detail, until_state, until_step, waiter, written
from tests.unit.world import Channel
from waiters.receiver import Unavailable

DAY_S = 24 * 3_600


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


class TestAfterADecision:
    """What a person withdrew may still appear, and one that stays uncertain is in nobody's way."""

    async def test_a_withdrawn_one_is_looked_for_along_with_others_and_never_alone(
        self, hall: Channel, queue: FakeReceiver
    ) -> None:
        queue.finds = {1: Event.KEY_IN_QUEUE}
        await send(hall, "one")
        async with waiter(hall, queue) as loop:
            await until_state(hall, 1, "accepted")
            await Decisions(hall.database, hall.clock).drop(1)
            queue.finds = {1: Event.KEY_IN_ITEMS, 2: Event.KEY_IN_ITEMS}
            hall.clock.advance(LOOK_S_MAX)
            loop.wake()
            await anyio.wait_all_tasks_blocked()
            assert await hall.states() == {1: "withdrawn"}

            await send(hall, "two")
            loop.wake()
            await until_asleep(hall, 1)
            hall.clock.advance(1)
            await until_state(hall, 2, "seen")
        assert await hall.states() == {1: "seen", 2: "seen"}
        assert (await hall.row(1))["detail"] == AFTER_WITHDRAWAL

    @pytest.mark.fault("F12")
    async def test_a_stale_uncertain_delivery_never_blocks_later_ones(self, hall: Channel, queue: FakeReceiver) -> None:
        queue.will(answer_lost())
        queue.finds = {1: Event.KEY_IN_NEITHER}
        await send(hall, "lost", "two")
        async with waiter(hall, queue) as loop:
            await until_state(hall, 2, "accepted")
            for _ in range(3):  # days pass, and it is still looked for
                hall.clock.advance(DAY_S)
                await send(hall, "later")
                loop.wake()
                await until_state(hall, max(await hall.states()), "accepted")
            await until_detail(hall, "delivery uncertain: 1")
        assert written(queue) == [1, 2, 3, 4, 5]
        assert (await hall.states())[1] == "uncertain"
