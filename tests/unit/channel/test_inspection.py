"""What a person is shown of deliveries."""

from collections.abc import Sequence

import pytest

from channel.delivery_states import Event, State
from channel.errors import UnknownDelivery
from channel.inspection import TEXT_BEGINS_CHARACTERS, Inspection
from tests.unit.world import Channel, claude, codex

HOUR_S = 3_600
ALL = 50


@pytest.fixture
async def inspection(channel: Channel) -> Inspection:
    """Message 1 (seen) and 2 (uncertain) to worker, an hour before 3 (pending, to worker and tester)."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    await channel.join(claude("tom"), "tester")
    lease = await channel.leases.take("thread", "p1", "")
    for text, event in (("one", Event.KEY_IN_ITEMS), ("two", Event.ANSWER_LOST)):
        await channel.send("ann", "worker", text)
        await channel.record(await channel.hand_over(lease), event, f"why {text}")
    channel.clock.advance(HOUR_S)
    await channel.send("ann", None, "three")
    return Inspection(channel.database, channel.clock)


def messages(found: Sequence[object]) -> list[tuple[int, str]]:
    return [(each.message_id, each.recipient) for each in found]  # type: ignore[attr-defined]


async def test_all_are_listed_with_the_newest_first(inspection: Inspection) -> None:
    found = await inspection.find(ALL)

    assert messages(found) == [(3, "tester"), (3, "worker"), (2, "worker"), (1, "worker")]
    second = found[2]
    assert (second.delivery_id, second.state, second.room, second.sender) == (2, "uncertain", "hall", "boss")
    assert second.detail == "why two"


async def test_a_list_is_narrowed_by_state_room_role_and_age(channel: Channel, inspection: Inspection) -> None:
    await channel.join(claude("ann"), "guest", room="cellar")
    await channel.join(codex("thread"), "worker", room="cellar")
    await channel.sending.send("ann", "four", None, "cellar")

    assert messages(await inspection.find(ALL, states=[State.SEEN, State.UNCERTAIN])) == [(2, "worker"), (1, "worker")]
    assert messages(await inspection.find(ALL, room="cellar")) == [(4, "worker")]
    assert messages(await inspection.find(ALL, role="tester")) == [(3, "tester")]
    assert messages(await inspection.find(ALL, older_than_ms=HOUR_S * 1_000)) == [(2, "worker"), (1, "worker")]
    assert messages(await inspection.find(ALL, older_than_ms=HOUR_S * 1_000 + 1)) == []
    assert messages(await inspection.find(ALL, states=[State.PENDING], room="hall", role="worker")) == [(3, "worker")]


async def test_a_list_is_cut_after_its_newest(inspection: Inspection) -> None:
    assert messages(await inspection.find(2)) == [(3, "tester"), (3, "worker")]


async def test_one_is_shown_with_all_that_happened_to_it(channel: Channel, inspection: Inspection) -> None:
    shown = await inspection.show(2)

    assert (shown.message_id, shown.state, shown.recipient, shown.policy) == (2, "uncertain", "worker", "queue")
    assert shown.key == f"agent-channel:{await channel.membership.channel_id()}:2"
    assert shown.address == "thread"
    assert [(each.event, each.from_state, each.to_state, each.why) for each in shown.events] == [
        ("sent", None, "pending", ""),
        ("hand_over_recorded", "pending", "handed_over", ""),
        ("answer_lost", "handed_over", "uncertain", "why two"),
    ]


async def test_one_that_was_never_handed_over_has_no_key_and_no_address(inspection: Inspection) -> None:
    shown = await inspection.show(3)

    assert (shown.key, shown.address, shown.policy, shown.handed_over_at_ms) == (None, None, None, None)


async def test_of_a_long_text_only_the_beginning_is_shown(channel: Channel, inspection: Inspection) -> None:
    await channel.send("ann", "worker", "x" * 10_000)

    shown = await inspection.show(5)
    assert (shown.text_begins, shown.text_characters) == ("x" * TEXT_BEGINS_CHARACTERS, 10_000)


async def test_a_delivery_is_named_by_its_id_or_by_message_and_role(inspection: Inspection) -> None:
    assert await inspection.delivery_id("2") == 2
    assert await inspection.delivery_id("3@tester") == 4


@pytest.mark.parametrize("name", ["", "two", "3@nobody", "9@worker", "-1", "@worker", "9" * 19, "9" * 5_000])
async def test_what_names_no_delivery_is_an_error(inspection: Inspection, name: str) -> None:
    with pytest.raises(UnknownDelivery, match="There is no delivery"):
        await inspection.delivery_id(name)


async def test_an_id_that_no_delivery_has_is_an_error(inspection: Inspection) -> None:
    with pytest.raises(UnknownDelivery, match="no delivery '99'"):
        await inspection.show(99)
