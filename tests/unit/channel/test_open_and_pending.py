"""What a woken waiter reads in one go."""

from channel.delivery_states import Event, Policy
from tests.unit.world import Channel, claude, codex


async def test_what_is_open_and_what_waits_are_as_when_each_is_read_alone(channel: Channel) -> None:
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    lease = await channel.leases.take("thread", "p1", "")
    for text in ("one", "two", "three"):
        await channel.send("ann", "worker", text)
    delivery = await channel.hand_over(lease)
    await channel.record(delivery, Event.ANSWERED)

    opened, pending = await channel.deliveries.open_and_pending(lease, Policy.QUEUE)

    assert opened == await channel.open_at(lease)
    assert pending == await channel.deliveries.next_pending("thread")
    assert [each.delivery_id for each in opened] == [delivery]
    assert [each.message.text for each in pending] == ["two", "three"]
