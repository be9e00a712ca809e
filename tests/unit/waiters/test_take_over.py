"""A waiter dies in the middle of a hand-over, or loses its lease, and another goes on."""

import anyio
import pytest

from channel.delivery_states import Event, Policy
from channel.errors import LeaseLost
from fakes.receiver import FakeReceiver, hanging
from tests.unit.waiters.rig import WAIT_S, send, until_asleep, until_detail, until_state, until_step, waiter, written
from tests.unit.world import Channel, World, claude
from waiters.background import background_tasks
from waiters.delivery_loop import DeliveryLoop


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
            new_loop = await self.idle(other, new, "p2")
            await send(hall, "one", "two")
            with anyio.fail_after(WAIT_S), pytest.raises(LeaseLost):
                await old_loop.run()
            async with background_tasks() as tasks:
                tasks.start_soon(new_loop.run)
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


async def test_what_a_dead_process_of_the_session_was_given_is_looked_for_though_the_roles_come_late(
    world: World, channel: Channel, monitor: FakeReceiver
) -> None:
    """A streamer may be armed before any tool call tells that its session is the old one, resumed."""
    await channel.join(claude("ann"), "boss")
    await channel.join(claude("old", session_id="s"), "worker")
    await send(channel, "one")
    await channel.hand_over(await channel.leases.take("old", "p1", ""), Policy.MONITOR)
    world.dead |= {"p1", "old-claude"}
    monitor.finds = {1: Event.IN_TRANSCRIPT}
    lease = await channel.leases.take("thread", "p2", "")
    loop = DeliveryLoop(lease, monitor, channel.deliveries, channel.leases, channel.clock)
    async with background_tasks() as tasks:
        tasks.start_soon(loop.run)
        await until_step(monitor, "ready")
        await anyio.wait_all_tasks_blocked()

        assert await channel.membership.recognise(claude("thread", session_id="s"))
        loop.wake()

        await until_state(channel, 1, "seen")


@pytest.mark.parametrize("state", ["handed_over", "accepted"])
async def test_what_came_later_does_not_overtake_what_a_dead_process_was_given_when_the_roles_come_late(
    world: World, channel: Channel, monitor: FakeReceiver, state: str
) -> None:
    """The first message stands nowhere, so it is printed again: before the second."""
    await channel.join(claude("ann"), "boss")
    await channel.join(claude("old", session_id="s"), "worker")
    await send(channel, "one")
    delivery = await channel.hand_over(await channel.leases.take("old", "p1", ""), Policy.MONITOR)
    if state == "accepted":
        await channel.record(delivery, Event.TAKEN)
    world.dead |= {"p1", "old-claude"}
    await channel.join(claude("thread"), "newcomer", room="lobby")
    await channel.join(claude("ann"), "host", room="lobby")
    await channel.sending.send("ann", "welcome", ["newcomer"], "lobby")
    async with waiter(channel, monitor, process="p2") as loop:
        await until_state(channel, 2, "accepted")
        await until_asleep(channel, 1)  # it has settled, and has nothing to do until its next look

        await channel.sending.send("ann", "two", ["worker"], "hall")
        assert await channel.membership.recognise(claude("thread", session_id="s"))
        loop.wake()

        await until_state(channel, 3, "accepted")
    assert [(each.message_id, each.repeats) for each in monitor.written.items] == [(2, 0), (1, 1), (3, 0)]
