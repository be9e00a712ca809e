"""F34: processes that are stopped for minutes, a wall clock that jumps, a machine that starts anew."""

from pathlib import Path

import anyio
import pytest

from channel.delivery_states import Event, Policy
from channel.errors import LeaseLost
from channel.presence import LEASE_TTL_S
from fakes.receiver import FakeReceiver, hanging
from tests.unit.waiters.rig import (
    WAIT_S,
    furnish,
    send,
    supervisor,
    until,
    until_state,
    waiter,
    written,
)
from tests.unit.world import Channel, World
from waiters.background import background_tasks
from waiters.delivery_loop import DeliveryLoop

pytestmark = pytest.mark.fault("F34")

STOPPED_S = 120
HOUR_MS = 3_600_000


def settled(policy: Policy) -> str:
    """Where a delivery ends in these tests: a queue's row stays in the queue."""
    return "accepted" if policy is Policy.QUEUE else "seen"


@pytest.mark.parametrize("policy", Policy)
async def test_a_waiter_stopped_in_the_middle_of_a_write_for_two_minutes_goes_on_where_it_was(
    world: World, hall: Channel, policy: Policy
) -> None:
    """Nobody took its lease meanwhile: it was out, and is in force again."""
    receiver, goes_on = FakeReceiver(policy), anyio.Event()
    receiver.will(hanging(goes_on))
    await send(hall, "one", "two")
    async with supervisor(hall, "p1") as waiters, world.process() as other:
        waiters.serve("thread", receiver)
        with anyio.fail_after(WAIT_S):
            await receiver.written.next()
        assert await other.leases.is_held("thread")
        hall.clock.advance(STOPPED_S)
        goes_on.set()
        await until_state(hall, 2, "accepted")

        async def renewed() -> bool:
            return await other.leases.is_held("thread")

        await until(renewed)
    assert written(receiver) == [1, 2]
    assert [each.repeats for each in receiver.written.items] == [0, 0]


@pytest.mark.parametrize("policy", Policy)
async def test_a_waiter_stopped_for_two_minutes_finds_another_in_its_place_and_gives_nothing_twice(
    world: World, hall: Channel, policy: Policy
) -> None:
    """The stopped one lives, so its lease alone tells; what it wrote is found by its heir and not given again."""
    stopped, heir, goes_on, heir_goes_on = FakeReceiver(policy), FakeReceiver(policy), anyio.Event(), anyio.Event()
    heir.written = stopped.written  # one harness, whoever writes
    stopped.will(hanging(goes_on))
    heir.will(hanging(heir_goes_on))
    await send(hall, "one", "two")
    lease = await hall.leases.take("thread", "p1", "")
    loop = DeliveryLoop(lease, stopped, hall.deliveries, hall.leases, hall.clock)
    ended: list[LeaseLost] = []

    async def serve() -> None:
        try:
            await loop.run()
        except LeaseLost as lost:
            ended.append(lost)

    async with background_tasks() as tasks:
        tasks.start_soon(serve)
        with anyio.fail_after(WAIT_S):
            await stopped.written.next()
        hall.clock.advance(STOPPED_S)
        async with world.process() as other, waiter(other, heir, process="p2"):
            await until_state(other, 2, "handed_over")
            await send(other, "three")
            goes_on.set()

            async def over() -> bool:
                return bool(ended)

            async def at_rest() -> bool:
                other.clock.advance(1)
                states = await other.states()
                return states[1] == states[3] == settled(policy)

            await until(over)  # its heir is busy meanwhile
            heir_goes_on.set()
            await until(at_rest)
    assert written(stopped) == [1, 2, 3]


@pytest.mark.parametrize("hours", [2, -1])
@pytest.mark.parametrize("policy", Policy)
async def test_a_wall_clock_that_is_set_changes_nothing_that_is_given_and_heals_by_itself(
    hall: Channel, policy: Policy, hours: int
) -> None:
    receiver = FakeReceiver(policy)
    receiver.finds = {1: None}
    await send(hall, "before")
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", receiver)
        await until_state(hall, 1, "accepted")
        hall.clock.set_wall_ms(hall.clock.now_ms() + hours * HOUR_MS)
        assert await hall.leases.is_held("thread")
        (after,) = await send(hall, "after")
        waiters.wake("thread")
        await until_state(hall, after, "accepted")
        receiver.finds = {1: Event.KEY_IN_ITEMS if policy is Policy.QUEUE else Event.IN_TRANSCRIPT}

        async def seen() -> bool:
            hall.clock.advance(1)
            return (await hall.states())[1] == "seen"

        await until(seen)
        assert await hall.leases.is_held("thread")
    assert written(receiver) == [1, after]


@pytest.mark.parametrize("policy", Policy)
async def test_after_the_machine_was_started_anew_a_lease_of_before_keeps_nobody_alive(
    tmp_path: Path, policy: Policy
) -> None:
    """The monotonic clock begins again, so the old lease lies weeks in the future of it."""
    receiver = FakeReceiver(policy)
    before = World(tmp_path)
    before.clock.advance(30 * 24 * 3_600)
    receiver.will(hanging(anyio.Event()))
    async with before.process() as channel:
        await furnish(channel)
        await send(channel, "one", "two")
        async with waiter(channel, receiver, process="p1"):
            with anyio.fail_after(WAIT_S):
                await receiver.written.next()

    after = World(tmp_path)
    after.clock.set_wall_ms(before.clock.now_ms() + HOUR_MS)
    assert after.clock.monotonic() + LEASE_TTL_S < before.clock.monotonic()
    async with after.process(boot="boot-2") as channel:
        assert not await channel.leases.is_held("thread")
        sent = await channel.send("ann", "worker", "three")
        assert not sent.recipients[0].waiter_active
        async with waiter(channel, receiver, process="p2"):
            await until_state(channel, 3, "accepted")
            await until_state(channel, 1, settled(policy))
    assert written(receiver) == [1, 2, 3]
