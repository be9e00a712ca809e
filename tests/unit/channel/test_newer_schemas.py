"""Old code that still runs while a newer version has changed the schema under it: it says so and writes nothing."""

from collections.abc import Awaitable, Callable

import pytest

from channel.delivery_states import Event, Policy
from channel.errors import SchemaTooNew, StoreBroken
from channel.leases import Lease
from channel.messages import HandOver, Outcome
from tests.newer_version import contents, upgrade
from tests.unit.world import Channel, World, claude, codex

Call = Callable[[Channel, Lease], Awaitable[object]]

CALLS: dict[str, Call] = {
    "join": lambda channel, lease: channel.join(claude("eve"), "guest"),
    "recognise": lambda channel, lease: channel.membership.recognise(claude("ann")),
    "rename": lambda channel, lease: channel.membership.rename("ann", "chief", None),
    "leave": lambda channel, lease: channel.membership.leave("ann", None),
    "connection": lambda channel, lease: channel.membership.connection("ann"),
    "send": lambda channel, lease: channel.send("ann", "worker"),
    "take": lambda channel, lease: channel.leases.take("ann", "p2", ""),
    "renew": lambda channel, lease: channel.leases.renew("p1", [lease]),
    "release": lambda channel, lease: channel.leases.release(lease),
    "set_detail": lambda channel, lease: channel.leases.set_detail(lease, "well"),
    "check": lambda channel, lease: channel.leases.check(lease),
    "is_held": lambda channel, lease: channel.leases.is_held("thread"),
    "next_pending": lambda channel, lease: channel.deliveries.next_pending("thread"),
    "record_hand_over": lambda channel, lease: channel.deliveries.record_hand_over(
        lease, Policy.QUEUE, [HandOver(1, "0" * 64)]
    ),
    "record": lambda channel, lease: channel.deliveries.record([Outcome(1, Event.ANSWERED)]),
    "record_silent_look": lambda channel, lease: channel.deliveries.record_silent_look([1]),
    "settle_broken_off": lambda channel, lease: channel.deliveries.settle_broken_off(lease),
    "open_at": lambda channel, lease: channel.deliveries.open_at(lease, Policy.QUEUE),
    "open_and_pending": lambda channel, lease: channel.deliveries.open_and_pending(lease, Policy.QUEUE),
    "note_waiting": lambda channel, lease: channel.deliveries.note_waiting("thread", "why"),
    "unserved_addresses": lambda channel, lease: channel.deliveries.unserved_addresses(),
    "message": lambda channel, lease: channel.deliveries.message(1),
}


@pytest.fixture
async def lease(channel: Channel) -> Lease:
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    await channel.send("ann", "worker")
    return await channel.leases.take("thread", "p1", "")


@pytest.mark.fault("F53")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_call_says_that_it_was_upgraded_and_writes_nothing(
    world: World, channel: Channel, lease: Lease, call: Call
) -> None:
    upgrade(world.path)
    before = contents(world.path)
    with pytest.raises(SchemaTooNew, match=r"was upgraded.*Restart this session"):
        await call(channel, lease)
    assert contents(world.path) == before


async def test_a_query_that_is_wrong_by_itself_is_not_called_an_upgrade(channel: Channel) -> None:
    with pytest.raises(StoreBroken, match="no such column"):
        await channel.database.read("SELECT shade FROM rooms")
