"""The two tables, pair by pair, against the design's, written once more as a person reads them."""

import re
from itertools import product

import pytest

from channel.delivery_states import BROKEN_OFF, MAY_BE_LATE, REPEATS, TABLES, Event, Policy, State, next_state
from channel.errors import IllegalTransition
from channel.migrations import load_migrations

QUEUE = """
pending                               | hand_over_recorded              | handed_over
handed_over uncertain                 | not_written                     | pending
handed_over uncertain                 | answered                        | accepted
handed_over uncertain                 | refused_without_effect          | pending
handed_over                           | answer_lost                     | uncertain
handed_over                           | waiter_died                     | uncertain
handed_over                           | taken_over                      | uncertain
accepted uncertain                    | key_in_queue_same_text          | accepted
handed_over accepted uncertain        | key_in_items_same_text          | seen
withdrawn                             | key_in_items_same_text          | seen
accepted                              | key_in_neither                  | accepted
accepted                              | key_in_neither_for_30_s         | uncertain
uncertain                             | key_in_neither                  | uncertain
handed_over accepted uncertain        | key_with_other_text             | conflict
conflict                              | key_in_queue_same_text          | conflict
conflict                              | key_in_items_same_text          | conflict
conflict                              | key_in_neither                  | conflict
conflict                              | key_with_other_text             | conflict
pending accepted uncertain conflict   | person_dropped                  | withdrawn
pending accepted uncertain conflict   | person_sent_again               | withdrawn
pending                               | recipient_left                  | withdrawn
handed_over accepted uncertain        | recipient_left                  | unchanged
"""

MONITOR = """
pending                               | hand_over_recorded              | handed_over
handed_over                           | not_written                     | pending
handed_over                           | taken                           | accepted
handed_over                           | write_failed                    | unchanged
handed_over                           | waiter_died                     | unchanged
handed_over                           | taken_over                      | unchanged
handed_over accepted                  | in_transcript                   | seen
handed_over accepted                  | stream_ended_not_in_transcript  | pending
handed_over                           | stream_ended_no_transcript      | pending
accepted                              | stream_ended_no_transcript      | accepted
pending                               | person_dropped                  | withdrawn
pending                               | person_sent_again               | withdrawn
pending                               | recipient_left                  | withdrawn
handed_over accepted                  | recipient_left                  | unchanged
handed_over accepted                  | recipient_left_not_in_transcript | withdrawn
"""


def read(table: str) -> dict[tuple[State, Event], State]:
    found = {}
    for line in table.strip().splitlines():
        states, event, after = (cell.strip() for cell in line.split("|"))
        for state in states.split():
            found[State(state), Event(event)] = State(state if after == "unchanged" else after)
    return found


EXPECTED = {Policy.QUEUE: read(QUEUE), Policy.MONITOR: read(MONITOR)}


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_a_pair_leads_where_the_design_says_and_every_other_pair_raises(
    policy: Policy, state: State, event: Event
) -> None:
    expected = EXPECTED[policy].get((state, event))
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"{policy.value} delivery that is {state.value}"):
            next_state(policy, state, event)
    else:
        assert next_state(policy, state, event) is expected


def test_only_a_hand_over_leads_from_pending_to_the_receiver() -> None:
    for table in TABLES.values():
        assert {event for (state, event), after in table.items() if state is State.PENDING and after is not state} == {
            Event.HAND_OVER_RECORDED,
            Event.RECIPIENT_LEFT,
            Event.PERSON_DROPPED,
            Event.PERSON_SENT_AGAIN,
        }


def test_a_queue_delivery_waits_again_only_where_it_is_known_that_nothing_was_added() -> None:
    """The promise: added at most once. Neither absence nor a death may lead back to pending."""
    back = {event for (state, event), after in TABLES[Policy.QUEUE].items() if after is State.PENDING}

    assert back == {Event.NOT_WRITTEN, Event.REFUSED_WITHOUT_EFFECT}


def test_a_monitor_delivery_that_waits_again_is_a_repeat_unless_nothing_was_written() -> None:
    back = {pair for pair, after in TABLES[Policy.MONITOR].items() if after is State.PENDING}

    assert back - {(State.HANDED_OVER, Event.NOT_WRITTEN)} == REPEATS


def test_seen_is_the_end() -> None:
    for table in TABLES.values():
        assert not [pair for pair in table if pair[0] is State.SEEN]


def test_evidence_that_may_be_late_never_hands_over_and_what_breaks_off_is_in_its_table() -> None:
    assert Event.HAND_OVER_RECORDED not in MAY_BE_LATE
    for policy, event in BROKEN_OFF.items():
        assert (State.HANDED_OVER, event) in TABLES[policy]


def test_the_states_of_the_schema_are_those_of_the_code() -> None:
    (check,) = re.findall(r"CHECK \(state IN\s+\(([^)]*)\)\)", load_migrations()[0].sql)
    policies = re.findall(r"CHECK \(policy IN \(([^)]*)\)\)", load_migrations()[0].sql)

    assert re.findall(r"'(\w+)'", check) == [state.value for state in State]
    assert re.findall(r"'(\w+)'", policies[0]) == [policy.value for policy in Policy]
