"""The last hour in minutes: how long deliveries took, and how many waited."""

import pytest

from channel import last_hour as last_hour_module
from channel.delivery_states import Event
from channel.last_hour import MINUTES, Minute, Took, last_hour
from tests.unit.world import Channel, claude, codex


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    """A room with two sessions, at the full minute."""
    channel.clock.set_wall_ms(channel.clock.now_ms() // 60_000 * 60_000)
    await channel.join(claude("ann"), "ann")
    await channel.join(codex("bob"), "bob")
    return channel


async def minutes_of(channel: Channel) -> tuple[Minute, ...]:
    return (await last_hour(channel.database, channel.clock)).minutes


async def deliver(channel: Channel, accepted_s: float, seen_s: float | None = None) -> None:
    """Send to bob, who has it after so long."""
    await channel.send("ann", "bob")
    lease = await channel.leases.take("bob", "p", "")
    delivery = await channel.hand_over(lease)
    channel.clock.advance(accepted_s)
    await channel.record(delivery, Event.ANSWERED)
    if seen_s is not None:
        channel.clock.advance(seen_s - accepted_s)
        await channel.record(delivery, Event.KEY_IN_ITEMS)
    await channel.leases.release(lease)


async def test_an_hour_without_anything_has_its_minutes_all_the_same(hall: Channel) -> None:
    hour = await last_hour(hall.database, hall.clock)
    assert (len(hour.minutes), hour.is_whole) == (MINUTES, True)
    assert {minute[1:] for minute in hour.minutes} == {(0, None, None, 0)}
    starts = [minute.begins_at_ms for minute in hour.minutes]
    assert starts == sorted(starts) and starts[-1] == hall.clock.now_ms()


async def test_a_minutes_times_are_those_of_what_was_sent_in_it(hall: Channel) -> None:
    for accepted_s, seen_s in ((1, 2), (3, 4), (5, None)):
        await deliver(hall, accepted_s, seen_s)
    assert (await minutes_of(hall))[-1][1:] == (3, Took(3_000, 5_000), Took(3_000, 4_000), 0)
    hall.clock.advance(60)
    before, now = (await minutes_of(hall))[-2:]
    assert (before.deliveries, now.deliveries, now.accepted) == (3, 0, None)


async def test_one_that_was_seen_at_once_was_accepted_then_too(hall: Channel) -> None:
    await hall.send("ann", "bob")
    delivery = await hall.hand_over(await hall.leases.take("bob", "p", ""))
    hall.clock.advance(2)
    await hall.record(delivery, Event.KEY_IN_ITEMS)
    assert (await minutes_of(hall))[-1][2:4] == (Took(2_000, 2_000), Took(2_000, 2_000))


async def test_what_waited_is_known_of_each_minute_also_of_what_was_sent_before_the_hour(hall: Channel) -> None:
    await hall.send("ann", "bob")
    hall.clock.advance(2 * 3_600)
    await hall.send("ann", "bob")
    hall.clock.advance(60)
    lease = await hall.leases.take("bob", "p", "")
    await hall.hand_over(lease)
    hall.clock.advance(60)
    assert [minute.waiting for minute in await minutes_of(hall)] == [1] * (MINUTES - 3) + [2, 1, 1]


async def test_more_than_is_read_is_said_to_be_more(hall: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_hour_module, "EVENTS_READ_MAX", 2)
    await hall.send("ann", "bob")
    assert (await last_hour(hall.database, hall.clock)).is_whole
    for _ in range(2):
        await hall.send("ann", "bob")
    hour = await last_hour(hall.database, hall.clock)
    assert (hour.is_whole, hour.minutes[-1].waiting) == (False, 3)


async def test_a_clock_that_was_set_back_makes_no_time_less_than_none(hall: Channel) -> None:
    await hall.send("ann", "bob")
    delivery = await hall.hand_over(await hall.leases.take("bob", "p", ""))
    hall.clock.set_wall_ms(hall.clock.now_ms() - 30_000)
    await hall.record(delivery, Event.ANSWERED)
    hall.clock.set_wall_ms(hall.clock.now_ms() + 30_000)
    assert (await minutes_of(hall))[-1].accepted == Took(0, 0)
