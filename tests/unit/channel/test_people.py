"""A person takes part: under a role of their own, and what waits for them is told as it is."""

import pytest

from channel.delivery_states import Event, Policy
from channel.errors import BadName, HeldByAnother, NobodyElse, SentToSelf, UnknownRole, UnknownRoom
from channel.messages import HandOver
from channel.people import DEFAULT_NAME, People, person
from tests.unit.world import Channel, World, claude, codex

WEEK_S = 7 * 24 * 3_600
KIM = person(1000, "command-1")


@pytest.fixture
async def people(channel: Channel) -> People:
    """In the hall there are boss, a Claude session, and worker, a Codex thread."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    return People(channel.database, channel.membership, channel.sending, channel.deliveries, channel.leases)


async def names(channel: Channel) -> list[str]:
    return [view.name for view in await channel.membership.roles_in(1)]


async def test_a_person_joins_by_sending_and_answers_wait_for_them(channel: Channel, people: People) -> None:
    sent = await people.send(KIM, "hall", "stop after the parser", ["boss"])
    answer = await channel.send("ann", DEFAULT_NAME, "done")

    assert (sent.sender.name, [view.name for view in sent.recipients]) == (DEFAULT_NAME, ["boss"])
    assert [(view.name, view.harness, view.waiter_active) for view in answer.recipients] == [
        (DEFAULT_NAME, "person", False)
    ]
    assert (await channel.states())[answer.message_id] == "pending"


async def test_another_name_is_a_rename_and_the_name_stays(channel: Channel, people: People) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    await people.send(KIM, "hall", "two", ["boss"], "kim")
    again = await people.send(person(1000, "command-2"), "hall", "three", None)

    assert again.sender.name == "kim"
    assert await names(channel) == ["boss", "worker", "kim"]


@pytest.mark.parametrize("has_role", [False, True])
async def test_no_role_of_an_agent_is_taken_over(channel: Channel, people: People, has_role: bool) -> None:
    if has_role:
        await people.send(KIM, "hall", "one", ["boss"])
    before = await names(channel)
    with pytest.raises(HeldByAnother, match=r"Give another name with --as\. Nothing was sent"):
        await people.send(KIM, "hall", "two", ["boss"], "worker")

    assert await names(channel) == before
    assert await channel.pending_ids("ann") == ([1] if has_role else [])


async def test_an_agent_that_takes_the_persons_name_gets_what_waits_for_it(channel: Channel, people: People) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    await channel.send("ann", DEFAULT_NAME, "for whoever is person")
    await channel.join(claude("bob"), DEFAULT_NAME)

    assert await channel.pending_ids("bob") == [2]
    with pytest.raises(HeldByAnother):
        await people.send(KIM, "hall", "two", ["boss"])


@pytest.mark.parametrize(
    ("room", "to", "name", "error"),
    [
        ("cellar", ["boss"], None, UnknownRoom),
        ("hall", ["nobody"], None, UnknownRole),
        ("hall", ["boss", "nobody"], "kim", UnknownRole),
        ("hall", ["boss"], "k i m", BadName),
        ("hall", ["boss"], "", BadName),
    ],
)
async def test_what_can_not_be_sent_makes_no_role_and_no_room(
    channel: Channel, people: People, room: str, to: list[str], name: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await people.send(KIM, room, "text", to, name)

    assert await names(channel) == ["boss", "worker"]
    assert len(await channel.database.read("SELECT * FROM rooms")) == 1


@pytest.mark.fault("F4")
@pytest.mark.parametrize(
    ("to", "error"),
    [(["nobody"], UnknownRole), (["boss", "nobody"], UnknownRole), (["kim"], SentToSelf), (None, NobodyElse)],
)
@pytest.mark.parametrize("has_role", [False, True])
async def test_what_can_not_be_sent_to_anybody_changes_no_name(
    channel: Channel, people: People, to: list[str] | None, error: type[Exception], has_role: bool
) -> None:
    if has_role:
        await people.send(KIM, "hall", "one", ["boss"], "kim")
    elif error is SentToSelf:
        error = UnknownRole
    if error is NobodyElse:
        await channel.membership.leave("ann", None)
        await channel.membership.leave("thread", None)
    before = await names(channel)
    with pytest.raises(error):
        await people.send(KIM, "hall", "two", to, "lee")

    assert await names(channel) == before


async def test_a_role_that_has_another_name_now_is_told_to_who_has_no_role_yet(
    channel: Channel, people: People
) -> None:
    await channel.membership.rename("ann", "chief", None)
    with pytest.raises(UnknownRole, match="chief"):
        await people.send(KIM, "hall", "text", ["boss"])


async def test_a_room_that_is_not_there_is_told_with_those_that_are(people: People) -> None:
    with pytest.raises(UnknownRoom, match=r"no room 'hal' in this channel\. The rooms there are: hall\."):
        await people.send(KIM, "hal", "text", ["boss"])


async def test_what_a_terminal_has_shown_is_accepted_and_never_looked_for(channel: Channel, people: People) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    await channel.send("ann", None, "two, to worker and the person")
    await channel.send("ann", DEFAULT_NAME, "three")
    await people.was_shown(KIM, [1, 2])

    waiting = await channel.database.read(
        "SELECT message_id, role_id FROM deliveries WHERE state = 'pending' ORDER BY 1, 2"
    )
    assert [tuple(row) for row in waiting] == [(1, 1), (2, 2), (3, 3)]
    delivery = (await channel.database.read("SELECT * FROM deliveries WHERE message_id = 2 AND role_id = 3"))[0]
    assert (delivery["state"], delivery["detail"], delivery["next_look_at_ms"]) == (
        "accepted",
        "shown on a terminal",
        None,
    )
    assert not await channel.leases.is_held(KIM.address)


async def test_one_that_was_shown_by_a_command_that_died_then_is_settled_by_the_next(
    channel: Channel, people: People
) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    await channel.send("ann", DEFAULT_NAME, "two")
    lease = await channel.leases.take(KIM.address, "command-1", "")
    pending = await channel.pending(KIM.address)
    await channel.deliveries.record_hand_over(lease, Policy.MONITOR, [HandOver(pending.delivery_id, "0" * 64)])
    await channel.leases.release(lease)

    await people.was_shown(person(1000, "command-2"), [2])
    assert (await channel.states())[2] == "accepted"


async def test_two_terminals_that_show_the_same_say_it_once(channel: Channel, people: People) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    await channel.send("ann", DEFAULT_NAME, "two")
    lease = await channel.leases.take(KIM.address, "command-2", "")
    await people.was_shown(KIM, [2])
    assert (await channel.states())[2] == "pending", "the other terminal is at it"
    await channel.leases.release(lease)

    await people.was_shown(KIM, [2])
    await people.was_shown(KIM, [2])
    assert [event for event, _ in await channel.history(2)] == ["sent", Event.HAND_OVER_RECORDED.value, "taken"]


async def test_a_person_who_was_quiet_for_a_week_gets_no_message_to_all(
    world: World, channel: Channel, people: People
) -> None:
    await people.send(KIM, "hall", "one", ["boss"])
    world.dead.add(KIM.process)
    channel.clock.advance(WEEK_S - 1)
    soon = await channel.send("ann", None, "two")
    channel.clock.advance(2)
    late = await channel.send("ann", None, "three")

    assert [view.name for view in soon.recipients] == ["worker", DEFAULT_NAME]
    assert [view.name for view in late.skipped] == [DEFAULT_NAME]
