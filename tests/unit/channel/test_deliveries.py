"""From pending to settled: who may hand over, whose evidence counts, when it is looked for again."""

from collections.abc import Awaitable, Callable

import pytest

from channel.deliveries import ABSENCE_GRACE_MS, PENDING_AT_ONCE, PENDING_LOOK_S
from channel.delivery_states import Event, Policy, State
from channel.errors import IllegalTransition, LeaseLost, UnknownMessage
from channel.leases import Lease
from channel.messages import HandOver, Outcome, key_of
from tests.unit.world import Channel, World, claude, codex

GRACE_S = ABSENCE_GRACE_MS / 1_000
HASH = "0" * 64


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    """The boss (ann) and a worker in a Codex thread."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    return channel


@pytest.fixture
async def lease(hall: Channel) -> Lease:
    return await hall.leases.take("thread", "p1", "")


@pytest.fixture
def given(hall: Channel, lease: Lease) -> Callable[..., Awaitable[int]]:
    """A delivery that was handed over, and then met these events."""

    async def give(*events: Event, policy: Policy = Policy.QUEUE) -> int:
        await hall.send("ann", "worker")
        delivery = await hall.hand_over(lease, policy)
        for event in events:
            await hall.record(delivery, event)
        return delivery

    return give


Given = Callable[..., Awaitable[int]]


async def test_what_waits_is_read_in_the_order_of_sending_and_in_bounded_numbers(hall: Channel) -> None:
    ids = [(await hall.send("ann", "worker", str(number))).message_id for number in range(PENDING_AT_ONCE + 5)]

    assert await hall.pending_ids("thread") == ids[:PENDING_AT_ONCE]


async def test_a_hand_over_copies_address_hash_place_and_term_into_the_delivery(hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    pending = await hall.pending("thread")
    hall.clock.advance(5)

    hand_over = HandOver(pending.delivery_id, HASH, place="here", detail="shortened")
    assert await hall.deliveries.record_hand_over(lease, Policy.QUEUE, [hand_over]) == {pending.delivery_id}

    row = await hall.row(pending.delivery_id)
    wanted = {
        "state": "handed_over",
        "policy": "queue",
        "address": "thread",
        "text_sha256": HASH,
        "place": "here",
        "detail": "shortened",
        "term": 1,
        "handed_over_at_ms": hall.clock.now_ms(),
        "next_look_at_ms": None,
    }
    assert {name: row[name] for name in wanted} == wanted
    assert await hall.history(pending.delivery_id) == [("sent", "pending"), ("hand_over_recorded", "handed_over")]


@pytest.mark.fault("F35")
async def test_only_the_newest_term_may_hand_over(world: World, hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    delivery = (await hall.pending("thread")).delivery_id
    world.dead.add("p1")
    newer = await hall.leases.take("thread", "p2", "")

    with pytest.raises(LeaseLost):
        await hall.deliveries.record_hand_over(lease, Policy.QUEUE, [HandOver(delivery, HASH)])
    assert (await hall.row(delivery))["state"] == "pending"

    assert await hall.deliveries.record_hand_over(newer, Policy.QUEUE, [HandOver(delivery, HASH)]) == {delivery}


@pytest.mark.fault("F35")
async def test_a_released_lease_and_the_lease_of_another_address_hand_over_nothing(hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    delivery = (await hall.pending("thread")).delivery_id
    foreign = await hall.leases.take("ann", "p1", "")

    assert await hall.deliveries.record_hand_over(foreign, Policy.QUEUE, [HandOver(delivery, HASH)]) == set()
    await hall.leases.release(lease)
    with pytest.raises(LeaseLost):
        await hall.deliveries.record_hand_over(lease, Policy.QUEUE, [HandOver(delivery, HASH)])
    assert (await hall.row(delivery))["state"] == "pending"


async def test_what_is_pending_no_longer_is_left_out_and_the_rest_is_handed_over(hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    first = await hall.hand_over(lease)
    await hall.send("ann", "worker")
    second = (await hall.pending("thread")).delivery_id

    both = [HandOver(first, HASH), HandOver(second, HASH)]
    assert await hall.deliveries.record_hand_over(lease, Policy.QUEUE, both) == {second}
    assert await hall.deliveries.record_hand_over(lease, Policy.QUEUE, both) == set()


@pytest.mark.fault("F36")
async def test_what_followed_to_another_session_is_not_handed_over_here(hall: Channel, lease: Lease) -> None:
    await hall.send("ann", "worker")
    delivery = (await hall.pending("thread")).delivery_id
    await hall.join(codex("other"), "worker")

    assert await hall.deliveries.record_hand_over(lease, Policy.QUEUE, [HandOver(delivery, HASH)]) == set()


async def test_evidence_is_taken_from_any_term(world: World, hall: Channel, given: Given) -> None:
    delivery = await given()
    world.dead.add("p1")
    newer = await hall.leases.take("thread", "p2", "")
    (settled,) = await hall.deliveries.settle_broken_off(newer)
    assert settled.state is State.UNCERTAIN

    assert await hall.record(delivery, Event.ANSWERED, "answered late") == "accepted"
    row = await hall.row(delivery)
    assert (row["detail"], row["accepted_at_ms"]) == ("answered late", hall.clock.now_ms())


@pytest.mark.parametrize("late", [Event.ANSWERED, Event.KEY_IN_QUEUE, Event.KEY_IN_NEITHER, Event.KEY_WITH_OTHER_TEXT])
async def test_evidence_that_comes_after_the_end_says_nothing_new(hall: Channel, given: Given, late: Event) -> None:
    delivery = await given(Event.ANSWERED, Event.KEY_IN_ITEMS)
    before = await hall.row(delivery)
    hall.clock.advance(10)

    (recorded,) = await hall.deliveries.record([Outcome(delivery, late, "late")])

    assert (recorded.state, recorded.changed) == (State.SEEN, False)
    assert await hall.row(delivery) == before


async def test_an_event_that_is_no_evidence_and_fits_no_state_raises_and_changes_nothing(
    hall: Channel, given: Given
) -> None:
    delivery = await given(Event.ANSWERED)
    with pytest.raises(IllegalTransition, match="queue delivery that is accepted can't take the event hand_over_rec"):
        await hall.record(delivery, Event.HAND_OVER_RECORDED)
    assert (await hall.row(delivery))["state"] == "accepted"


async def test_every_transition_stands_in_the_history_with_its_reason(hall: Channel, given: Given) -> None:
    delivery = await given(Event.ANSWER_LOST, Event.KEY_IN_QUEUE, Event.KEY_IN_QUEUE, Event.KEY_IN_ITEMS)

    assert await hall.history(delivery) == [
        ("sent", "pending"),
        ("hand_over_recorded", "handed_over"),
        ("answer_lost", "uncertain"),
        ("key_in_queue_same_text", "accepted"),
        ("key_in_items_same_text", "seen"),
    ]


async def test_a_look_that_finds_the_same_is_no_change_of_the_delivery(hall: Channel, given: Given) -> None:
    delivery = await given(Event.ANSWERED)
    changed_ms = hall.clock.now_ms()
    hall.clock.advance(100)

    await hall.record(delivery, Event.KEY_IN_QUEUE)

    row = await hall.row(delivery)
    assert (row["changed_at_ms"], row["accepted_at_ms"]) == (changed_ms, changed_ms)


@pytest.mark.fault("F12")
async def test_a_key_in_neither_place_makes_a_delivery_uncertain_after_thirty_seconds_and_not_before(
    hall: Channel, given: Given
) -> None:
    delivery = await given(Event.ANSWERED)
    hall.clock.advance(1_000)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "accepted"
    hall.clock.advance(GRACE_S - 1)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "accepted"
    hall.clock.advance(1)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "uncertain"
    hall.clock.advance(10**9)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "uncertain"
    assert await hall.record(delivery, Event.KEY_IN_ITEMS) == "seen"


async def test_a_key_that_was_found_in_between_begins_the_thirty_seconds_anew(hall: Channel, given: Given) -> None:
    delivery = await given(Event.ANSWERED, Event.KEY_IN_NEITHER)
    hall.clock.advance(GRACE_S)
    assert await hall.record(delivery, Event.KEY_IN_QUEUE) == "accepted"
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "accepted"
    hall.clock.advance(GRACE_S)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "uncertain"


@pytest.mark.fault("F34")
async def test_a_clock_that_was_set_back_begins_the_thirty_seconds_anew(hall: Channel, given: Given) -> None:
    delivery = await given(Event.ANSWERED, Event.KEY_IN_NEITHER)
    hall.clock.set_wall_ms(hall.clock.now_ms() - 3_600_000)

    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "accepted"
    hall.clock.advance(GRACE_S)
    assert await hall.record(delivery, Event.KEY_IN_NEITHER) == "uncertain"


async def test_a_key_that_is_absent_is_looked_for_again_within_the_grace_however_long_it_was_there(
    hall: Channel, given: Given
) -> None:
    delivery = await given(Event.ANSWERED, *[Event.KEY_IN_QUEUE] * 20)
    assert await next_look_s(hall, delivery) == 600

    await hall.record(delivery, Event.KEY_IN_NEITHER)

    assert await next_look_s(hall, delivery) == GRACE_S


@pytest.mark.fault("F8")
@pytest.mark.parametrize("events", [[Event.ANSWERED], [Event.ANSWER_LOST]])
async def test_what_is_not_settled_is_looked_for_for_ever(hall: Channel, given: Given, events: list[Event]) -> None:
    delivery = await given(*events)
    found = Event.KEY_IN_QUEUE if events == [Event.ANSWERED] else Event.KEY_IN_NEITHER
    for _ in range(60):
        look_s = await next_look_s(hall, delivery)
        assert look_s is not None and 0 < look_s <= 600
        hall.clock.advance(look_s)
        await hall.record(delivery, found)
    assert await next_look_s(hall, delivery) == 600


async def test_a_look_that_says_nothing_is_repeated_later_and_not_at_once(hall: Channel, given: Given) -> None:
    delivery = await given(Event.ANSWERED)
    intervals = []
    for _ in range(4):
        intervals.append(await next_look_s(hall, delivery))
        hall.clock.advance(intervals[-1] or 0)
        await hall.deliveries.record_silent_look([delivery])

    assert intervals == [1, 2, 5, 10]
    assert (await hall.row(delivery))["state"] == "accepted"


@pytest.mark.parametrize("event", [Event.KEY_IN_ITEMS, Event.KEY_WITH_OTHER_TEXT])
async def test_what_is_settled_is_looked_for_no_more(hall: Channel, given: Given, event: Event) -> None:
    delivery = await given(Event.ANSWERED, event)

    assert await next_look_s(hall, delivery) is None
    assert await hall.deliveries.next_look_at_ms("thread") is None


async def test_a_hand_over_that_broke_off_in_a_living_waiter_is_settled_too(
    hall: Channel, lease: Lease, given: Given
) -> None:
    delivery = await given()

    (settled,) = await hall.deliveries.settle_broken_off(lease)

    assert (settled.delivery_id, settled.state) == (delivery, State.UNCERTAIN)
    assert (await hall.history(delivery))[-1] == ("answer_lost", "uncertain")
    assert await hall.deliveries.settle_broken_off(lease) == []


class TestAMonitor:
    """Under the policy that may repeat."""

    async def test_a_dead_waiter_decides_nothing_before_the_transcript_was_looked_at(
        self, world: World, hall: Channel, given: Given
    ) -> None:
        delivery = await given(policy=Policy.MONITOR)
        world.dead.add("p1")
        newer = await hall.leases.take("thread", "p2", "")

        (settled,) = await hall.deliveries.settle_broken_off(newer)
        (found,) = await hall.open_at(newer, Policy.MONITOR)

        assert settled.state is State.HANDED_OVER
        assert (found.delivery_id, found.of_former_term) == (delivery, True)

    @pytest.mark.parametrize(
        ("events", "repeats"),
        [
            ([Event.NOT_IN_TRANSCRIPT], 1),
            ([Event.NO_TRANSCRIPT], 1),
            ([Event.TAKEN, Event.NOT_IN_TRANSCRIPT], 1),
            ([Event.NOT_WRITTEN], 0),
        ],
    )
    async def test_the_next_print_says_repeat_unless_nothing_was_written(
        self, hall: Channel, given: Given, events: list[Event], repeats: int
    ) -> None:
        delivery = await given(*events, policy=Policy.MONITOR)

        pending = await hall.pending("thread")

        assert (pending.delivery_id, pending.repeats) == (delivery, repeats)

    async def test_repeats_are_counted(self, hall: Channel, lease: Lease, given: Given) -> None:
        delivery = await given(Event.NOT_IN_TRANSCRIPT, policy=Policy.MONITOR)
        assert await hall.hand_over(lease, Policy.MONITOR) == delivery
        await hall.record(delivery, Event.NO_TRANSCRIPT)

        assert (await hall.pending("thread")).repeats == 2

    async def test_without_a_transcript_what_was_taken_stays_accepted_and_is_looked_for_no_more(
        self, hall: Channel, given: Given
    ) -> None:
        delivery = await given(Event.TAKEN, Event.NO_TRANSCRIPT, policy=Policy.MONITOR)

        assert (await hall.row(delivery))["state"] == "accepted"
        assert await next_look_s(hall, delivery) is None

    async def test_who_took_the_role_over_looks_for_what_the_old_session_was_shown(
        self, hall: Channel, lease: Lease, given: Given
    ) -> None:
        delivery = await given(Event.TAKEN, policy=Policy.MONITOR)
        await hall.join(claude("carl"), "worker")
        newer = await hall.leases.take("carl", "p2", "")
        assert await hall.open_at(newer, Policy.MONITOR) == []  # its own waiter lives

        await hall.leases.release(lease)
        (found,) = await hall.open_at(newer, Policy.MONITOR)

        assert (found.delivery_id, found.of_former_term, found.role_is_replaced) == (delivery, True, True)
        assert await hall.record(delivery, Event.RECIPIENT_REPLACED, "may have been shown to thread") == "withdrawn"


async def test_a_queue_is_looked_at_through_its_own_thread_only(hall: Channel, lease: Lease, given: Given) -> None:
    """Another thread would find the key nowhere, and call it uncertain."""
    delivery = await given(Event.ANSWERED)
    await hall.join(codex("other"), "worker")
    await hall.leases.release(lease)
    other = await hall.leases.take("other", "p2", "")

    assert await hall.open_at(other) == []
    assert [each.delivery_id for each in await hall.open_at(lease)] == [delivery]


async def test_what_waits_says_why(hall: Channel) -> None:
    await hall.send("ann", "worker")
    delivery = (await hall.pending("thread")).delivery_id
    await hall.deliveries.note_waiting("thread", "queue full")

    row = await hall.row(delivery)
    assert (row["state"], row["detail"]) == ("pending", "queue full")


async def test_what_a_person_should_know_of_is_listed_by_state(hall: Channel, given: Given) -> None:
    for events in ([Event.ANSWER_LOST], [Event.ANSWERED, Event.KEY_WITH_OTHER_TEXT], [Event.ANSWERED], []):
        await given(*events)

    assert await hall.deliveries.troubled("thread") == {State.UNCERTAIN: [1], State.CONFLICT: [2]}


async def test_a_thread_without_a_waiter_that_has_work_is_for_any_server(hall: Channel, lease: Lease) -> None:
    assert await hall.deliveries.unserved_addresses() == ([], None)
    await hall.send("ann", "worker")
    assert await hall.deliveries.unserved_addresses() == ([], PENDING_LOOK_S)

    await hall.leases.release(lease)
    assert await hall.deliveries.unserved_addresses() == (["thread"], None)


async def test_a_look_up_of_a_thread_without_a_waiter_falls_due_for_any_server(
    hall: Channel, lease: Lease, given: Given
) -> None:
    await given(Event.ANSWER_LOST)
    await hall.leases.release(lease)

    assert await hall.deliveries.unserved_addresses() == ([], 10)
    hall.clock.advance(10)
    assert await hall.deliveries.unserved_addresses() == (["thread"], None)


async def test_a_message_is_had_by_its_id_and_an_unknown_id_is_an_error(hall: Channel) -> None:
    sent = await hall.send("ann", "worker", "the text")

    assert (await hall.deliveries.message(sent.message_id)).text == "the text"
    with pytest.raises(UnknownMessage, match="no message 99"):
        await hall.deliveries.message(99)
    with pytest.raises(UnknownMessage, match="no message 99"):
        await hall.deliveries.message(int("9" * 20))


def test_a_key_names_the_channel_and_the_message() -> None:
    assert key_of("0f", 12) == "agent-channel:0f:12"


async def next_look_s(channel: Channel, delivery: int) -> float | None:
    at_ms = (await channel.row(delivery))["next_look_at_ms"]
    assert at_ms is None or isinstance(at_ms, int)
    return None if at_ms is None else (at_ms - channel.clock.now_ms()) / 1_000
