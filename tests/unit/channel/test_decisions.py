"""A person's decisions: allowed by the tables only, and never so that a text may be read twice unforced."""

from itertools import product

import pytest

from channel.decisions import Decisions
from channel.deliveries import ABSENCE_GRACE_MS, AFTER_WITHDRAWAL
from channel.delivery_states import TABLES, Event, Policy, State
from channel.errors import DecisionRefused, UnknownDelivery
from channel.leases import Lease
from tests.unit.world import Channel, claude, codex

GRACE_S = ABSENCE_GRACE_MS / 1_000

WAY_TO: dict[Policy, dict[State, tuple[Event, ...]]] = {
    Policy.QUEUE: {
        State.HANDED_OVER: (),
        State.ACCEPTED: (Event.ANSWERED,),
        State.SEEN: (Event.KEY_IN_ITEMS,),
        State.UNCERTAIN: (Event.ANSWER_LOST,),
        State.CONFLICT: (Event.KEY_WITH_OTHER_TEXT,),
        State.PENDING: (Event.NOT_WRITTEN,),
    },
    Policy.MONITOR: {
        State.HANDED_OVER: (),
        State.ACCEPTED: (Event.TAKEN,),
        State.SEEN: (Event.IN_TRANSCRIPT,),
        State.PENDING: (Event.NOT_IN_TRANSCRIPT,),
    },
}
"""What brings a delivery that was handed over to a state."""

FORCED_ONLY = {(Policy.QUEUE, State.ACCEPTED), (Policy.QUEUE, State.PENDING), (Policy.MONITOR, State.PENDING)}


@pytest.fixture
def decisions(channel: Channel) -> Decisions:
    return Decisions(channel.database, channel.clock)


@pytest.fixture
async def lease(channel: Channel) -> Lease:
    """The boss (`ann`) and a worker, whose waiter this is."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    return await channel.leases.take("thread", "p1", "")


async def given(channel: Channel, lease: Lease, *events: Event, policy: Policy = Policy.QUEUE) -> int:
    """A delivery that was handed over, and what happened to it then."""
    await channel.send("ann", "worker", "do it\n  now")
    delivery_id = await channel.hand_over(lease, policy)
    for event in events:
        await channel.record(delivery_id, event)
    return delivery_id


async def absent_for(channel: Channel, delivery_id: int, seconds: float) -> None:
    """A look finds the key nowhere, and another one after so long."""
    await channel.record(delivery_id, Event.KEY_IN_NEITHER)
    channel.clock.advance(seconds)
    await channel.record(delivery_id, Event.KEY_IN_NEITHER)


class TestSendingAgain:
    async def test_the_text_goes_to_the_same_role_from_the_same_sender_and_the_old_one_says_so(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.ANSWER_LOST)
        await absent_for(channel, old, GRACE_S)

        sent = await decisions.send_again(old, force=False)

        again = await channel.pending("thread")
        assert (sent.message_id, sent.delivery_id) == (again.message.message_id, again.delivery_id) == (2, 2)
        assert (sent.recipient, sent.address) == ("worker", "thread")
        assert (again.message.text, again.message.sender, again.message.room) == ("do it\n  now", "boss", "hall")
        row = await channel.row(old)
        assert (row["state"], row["detail"], row["next_look_at_ms"]) == ("withdrawn", "sent again as message 2", None)
        assert (await channel.history(old))[-1] == ("person_sent_again", "withdrawn")
        assert await channel.history(again.delivery_id) == [("sent", "pending")]

    async def test_an_uncertain_one_that_no_look_found_absent_is_refused(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.ANSWER_LOST)

        with pytest.raises(DecisionRefused, match="uncertain and was not sent again: no look has found it"):
            await decisions.send_again(old, force=False)
        assert await channel.pending_ids("thread") == []

    async def test_absence_counts_from_the_first_of_the_looks_in_a_row_that_found_nothing(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.ANSWER_LOST)
        await absent_for(channel, old, GRACE_S)
        await channel.record(old, Event.KEY_IN_QUEUE)
        await absent_for(channel, old, GRACE_S)  # accepted, then uncertain: the first look was GRACE_S ago
        await channel.record(old, Event.KEY_IN_QUEUE)
        assert await channel.record(old, Event.KEY_IN_NEITHER) == "accepted"
        await absent_for(channel, old, GRACE_S - 1)

        with pytest.raises(DecisionRefused, match="accepted and was not sent again"):
            await decisions.send_again(old, force=False)
        channel.clock.advance(1)
        assert await channel.record(old, Event.KEY_IN_NEITHER) == "uncertain"
        assert (await decisions.send_again(old, force=False)).message_id == 2

    async def test_one_that_was_absent_only_a_moment_is_refused_with_how_long_to_wait(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.ANSWER_LOST)
        await absent_for(channel, old, 12)

        with pytest.raises(DecisionRefused, match="on its way from the queue to the thread; ask again in 18 s"):
            await decisions.send_again(old, force=False)

    @pytest.mark.parametrize(("policy", "state"), [(p, s) for p, states in WAY_TO.items() for s in states])
    async def test_each_state_is_refused_or_taken_by_its_table_and_forced_where_it_may_appear_yet(
        self, channel: Channel, decisions: Decisions, lease: Lease, policy: Policy, state: State
    ) -> None:
        old = await given(channel, lease, *WAY_TO[policy][state], policy=policy)
        assert (await channel.row(old))["state"] == state.value
        if state is State.UNCERTAIN:
            await absent_for(channel, old, GRACE_S)
        allowed = (state, Event.PERSON_SENT_AGAIN) in TABLES[policy]

        if not allowed or (policy, state) in FORCED_ONLY:
            with pytest.raises(DecisionRefused) as refused:
                await decisions.send_again(old, force=False)
            assert refused.value.may_be_forced == allowed
            assert (await channel.row(old))["state"] == state.value
        if not allowed:
            with pytest.raises(DecisionRefused):
                await decisions.send_again(old, force=True)
            return
        await decisions.send_again(old, force=True)
        assert (await channel.row(old))["state"] == "withdrawn"

    async def test_it_follows_a_role_that_was_taken_over(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.KEY_WITH_OTHER_TEXT)
        await channel.join(codex("another"), "worker")

        sent = await decisions.send_again(old, force=False)

        assert sent.address == "another"
        assert await channel.pending_ids("another") == [sent.message_id]

    async def test_nothing_is_sent_to_a_role_that_left(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.KEY_WITH_OTHER_TEXT)
        await channel.membership.leave("thread", None)

        with pytest.raises(DecisionRefused, match="worker has left the room"):
            await decisions.send_again(old, force=True)
        assert (await channel.row(old))["state"] == "conflict"

    async def test_a_second_time_is_refused_and_names_the_first(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        old = await given(channel, lease, Event.KEY_WITH_OTHER_TEXT)
        await decisions.send_again(old, force=False)

        with pytest.raises(DecisionRefused, match=r"withdrawn \(sent again as message 2\) and was not sent again"):
            await decisions.send_again(old, force=True)


class TestDropping:
    @pytest.mark.parametrize(("policy", "state"), [(p, s) for p, states in WAY_TO.items() for s in states])
    async def test_each_state_is_dropped_or_refused_by_its_table(
        self, channel: Channel, decisions: Decisions, lease: Lease, policy: Policy, state: State
    ) -> None:
        delivery_id = await given(channel, lease, *WAY_TO[policy][state], policy=policy)

        if (state, Event.PERSON_DROPPED) in TABLES[policy]:
            assert await decisions.drop(delivery_id) is state
            assert (await channel.row(delivery_id))["detail"] == "dropped by a person"
            assert (await channel.history(delivery_id))[-1] == ("person_dropped", "withdrawn")
        else:
            with pytest.raises(DecisionRefused, match=f"is {state.value} and was not dropped: "):
                await decisions.drop(delivery_id)
            assert (await channel.row(delivery_id))["state"] == state.value

    async def test_one_that_was_never_handed_over_is_dropped_and_never_delivered(
        self, channel: Channel, decisions: Decisions, lease: Lease
    ) -> None:
        await channel.send("ann", "worker")

        assert await decisions.drop(1) is State.PENDING
        assert await channel.pending_ids("thread") == []

    async def test_every_pair_of_a_policy_and_a_state_that_there_is_was_tried(self) -> None:
        possible = {
            (policy, state)
            for policy, state in product(Policy, State)
            if state is not State.WITHDRAWN and state in set(TABLES[policy].values())
        }
        assert possible == {(policy, state) for policy, states in WAY_TO.items() for state in states}


async def test_an_unknown_delivery_is_named(channel: Channel, decisions: Decisions, lease: Lease) -> None:
    with pytest.raises(UnknownDelivery, match="no delivery '7'"):
        await decisions.drop(7)
    with pytest.raises(UnknownDelivery, match="no delivery '7'"):
        await decisions.send_again(7, force=True)


async def test_what_appears_after_a_withdrawal_is_seen_and_said_so(
    channel: Channel, decisions: Decisions, lease: Lease
) -> None:
    delivery_id = await given(channel, lease, Event.ANSWERED)
    await decisions.drop(delivery_id)

    for nothing_new in (Event.KEY_IN_NEITHER, Event.KEY_IN_QUEUE, Event.KEY_WITH_OTHER_TEXT):
        assert await channel.record(delivery_id, nothing_new, "a look") == "withdrawn"
    assert (await channel.row(delivery_id))["detail"] == "dropped by a person"
    assert await channel.record(delivery_id, Event.KEY_IN_ITEMS) == "seen"
    assert (await channel.row(delivery_id))["detail"] == AFTER_WITHDRAWAL
