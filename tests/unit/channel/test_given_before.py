"""A message to all, whose recipient takes over another role that it waits for."""

import pytest

from channel.delivery_states import Event, Policy
from tests.unit.world import Channel, claude, codex

ANN, BOB = claude("ann"), claude("bob")


async def texts(channel: Channel, address: str) -> list[str]:
    return [each.message.text for each in await channel.deliveries.next_pending(address)]


@pytest.mark.fault("F36")
@pytest.mark.parametrize("was_it", ["waiting", "refused"])
async def test_a_thread_is_never_given_a_key_again_that_it_was_given_as_another_role(
    channel: Channel, was_it: str
) -> None:
    thread, other = codex("thread"), codex("other")
    for caller, name in ((ANN, "boss"), (thread, "worker"), (other, "tester")):
        await channel.join(caller, name)
    await channel.send("ann", None, "to all")
    assert await channel.record(await channel.hand_over(await channel.leases.take("other", "p", "")), Event.ANSWERED)
    given = await channel.hand_over(await channel.leases.take("thread", "p", "")) if was_it == "refused" else None
    await channel.membership.leave("other", None)
    await channel.join(other, "worker")

    if given is not None:
        assert await channel.record(given, Event.REFUSED_WITHOUT_EFFECT) == "withdrawn"

    assert await texts(channel, "other") == []
    rows = await channel.database.read("SELECT state FROM deliveries WHERE message_id = 1 ORDER BY state")
    assert [row["state"] for row in rows] == ["accepted", "withdrawn"]


@pytest.mark.fault("F36")
@pytest.mark.parametrize("taken_over_by", ["the same process", "a later process of the same session", "another"])
async def test_a_session_is_shown_as_a_repeat_what_it_was_shown_as_another_role(
    channel: Channel, taken_over_by: str
) -> None:
    tester = claude("carl", session_id="the session")
    for caller, name in ((ANN, "boss"), (BOB, "worker"), (tester, "tester")):
        await channel.join(caller, name)
    await channel.send("ann", None, "to all")
    delivery = await channel.hand_over(await channel.leases.take("carl", "p", ""), Policy.MONITOR)
    assert await channel.record(delivery, Event.TAKEN) == "accepted"
    await channel.membership.leave("carl", None)
    heir = {
        "the same process": tester,
        "a later process of the same session": claude("carl-2", session_id="the session"),
        "another": claude("dora"),
    }[taken_over_by]
    await channel.join(heir, "worker")

    [pending] = await channel.deliveries.next_pending(heir.address)
    assert (pending.message.text, pending.repeats > 0) == ("to all", taken_over_by != "another")


@pytest.mark.fault("F36")
@pytest.mark.parametrize("event", [Event.REFUSED_WITHOUT_EFFECT, Event.NOT_WRITTEN])
async def test_what_a_thread_surely_never_got_as_another_role_is_given_to_it(channel: Channel, event: Event) -> None:
    other = codex("other")
    for caller, name in ((ANN, "boss"), (codex("thread"), "worker"), (other, "tester")):
        await channel.join(caller, name)
    await channel.send("ann", None, "to all")
    refused = await channel.hand_over(await channel.leases.take("other", "p", ""))
    assert await channel.record(refused, event) == "pending"
    await channel.membership.leave("other", None)
    await channel.join(other, "worker")

    assert await texts(channel, "other") == ["to all"]


@pytest.mark.fault("F36")
@pytest.mark.parametrize(("event", "may_have_been_shown"), [(Event.NOT_WRITTEN, False), (Event.WRITE_FAILED, True)])
async def test_what_a_session_may_have_been_shown_as_another_role_is_a_repeat_and_nothing_else_is(
    channel: Channel, event: Event, may_have_been_shown: bool
) -> None:
    for caller, name in ((ANN, "boss"), (BOB, "worker"), (claude("carl"), "tester")):
        await channel.join(caller, name)
    await channel.send("ann", None, "to all")
    delivery = await channel.hand_over(await channel.leases.take("carl", "p", ""), Policy.MONITOR)
    await channel.record(delivery, event)
    if may_have_been_shown:
        assert await channel.record(delivery, Event.NOT_IN_TRANSCRIPT) == "pending"
    await channel.membership.leave("carl", None)
    await channel.join(claude("carl"), "worker")

    [pending] = await channel.deliveries.next_pending("carl")
    assert (pending.message.text, pending.repeats > 0) == ("to all", may_have_been_shown)
