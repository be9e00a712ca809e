"""A waiter that was taken for dead: stopped for longer than its lease, it goes on and tells of its hand-over.

Ours; found by the simulation (tests/simulation).
"""

from collections.abc import Awaitable, Callable

import pytest

from channel.delivery_states import Event, Policy, State
from channel.leases import Lease
from channel.messages import Outcome
from tests.unit.world import Channel, World, claude, codex

HandedOver = Callable[..., Awaitable[int]]


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    """The boss (ann) and a worker."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    return channel


@pytest.fixture
async def lease(hall: Channel) -> Lease:
    return await hall.leases.take("thread", "p1", "")


@pytest.fixture
def handed_over(hall: Channel, lease: Lease) -> HandedOver:
    """A delivery that the first waiter handed over, and that then met these events."""

    async def give(*events: Event, policy: Policy = Policy.QUEUE) -> int:
        await hall.send("ann", "worker")
        delivery = await hall.hand_over(lease, policy)
        for event in events:
            await hall.record(delivery, event)
        return delivery

    return give


async def test_that_nothing_was_written_is_still_known_and_worth_knowing(
    world: World, hall: Channel, handed_over: HandedOver
) -> None:
    delivery = await handed_over()
    world.dead.add("p1")
    await hall.deliveries.settle_broken_off(await hall.leases.take("thread", "p2", ""))

    (recorded,) = await hall.deliveries.record([Outcome(delivery, Event.NOT_WRITTEN, "dead socket", term=1)])

    assert (recorded.state, recorded.changed) == (State.PENDING, True)


@pytest.mark.parametrize("late", [Event.ANSWER_LOST, Event.WAITER_DIED, Event.NOT_WRITTEN])
async def test_of_a_delivery_that_has_moved_on_it_says_nothing_new(
    hall: Channel, handed_over: HandedOver, late: Event
) -> None:
    delivery = await handed_over(Event.ANSWERED)

    (recorded,) = await hall.deliveries.record([Outcome(delivery, late, "late", term=1)])

    assert (recorded.state, recorded.changed) == (State.ACCEPTED, False)


@pytest.mark.parametrize("late", [Event.TAKEN, Event.NOT_WRITTEN, Event.WRITE_FAILED])
async def test_it_says_nothing_of_the_next_hand_over(
    world: World, hall: Channel, handed_over: HandedOver, late: Event
) -> None:
    delivery = await handed_over(Event.NOT_IN_TRANSCRIPT, policy=Policy.MONITOR)
    world.dead.add("p1")
    await hall.hand_over(await hall.leases.take("thread", "p2", ""), Policy.MONITOR)

    (recorded,) = await hall.deliveries.record([Outcome(delivery, late, "late", term=1)])

    assert (recorded.state, recorded.changed) == (State.HANDED_OVER, False)


async def test_it_does_not_settle_what_the_new_holder_hands_over(world: World, hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    world.dead.add("p1")
    await hall.hand_over(await hall.leases.take("thread", "p2", ""))

    assert await hall.deliveries.settle_broken_off(lease) == []
