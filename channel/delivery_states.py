"""The two delivery policies as tables: `{(state, event): state}`. What is not in a table raises.

`queue` is a Codex thread's queue: a message is added at most once, whatever happens. `monitor` is a
Claude Code Monitor: a message may be printed again, marked as a repeat, when it can't be proved shown.
SQL's CHECK repeats the states.
"""

from collections.abc import Mapping
from enum import Enum

from channel.errors import IllegalTransition


class State(str, Enum):
    PENDING = "pending"
    """Not handed to anyone; its detail says what it waits for."""
    HANDED_OVER = "handed_over"
    """The decision to give it to its address is committed; the effect may or may not have happened."""
    ACCEPTED = "accepted"
    """The receiver has it: the add was answered or the key is in the queue; the reader emptied the socket."""
    SEEN = "seen"
    """It is recorded where the model reads it: among the thread's items; whole in the session's transcript."""
    UNCERTAIN = "uncertain"
    """Handed over, but there was no answer, or it is no longer in the queue, and it was found nowhere."""
    CONFLICT = "conflict"
    """Its key is held by a message with another text."""
    WITHDRAWN = "withdrawn"
    """A person decided so, or its recipient left before it was given."""


class Event(str, Enum):
    HAND_OVER_RECORDED = "hand_over_recorded"
    """Committed before one byte is written."""
    NOT_WRITTEN = "not_written"
    """This very process knows that not one byte went out."""
    ANSWERED = "answered"
    REFUSED_WITHOUT_EFFECT = "refused_without_effect"
    ANSWER_LOST = "answer_lost"
    TAKEN = "taken"
    """The reader emptied the socket after the last part."""
    WRITE_FAILED = "write_failed"
    WAITER_DIED = "waiter_died"
    TAKEN_OVER = "taken_over"
    """Raised by nobody: whoever takes a waiter's place finds what it left as WAITER_DIED, alive or not."""
    KEY_IN_QUEUE = "key_in_queue_same_text"
    KEY_IN_ITEMS = "key_in_items_same_text"
    KEY_IN_NEITHER = "key_in_neither"
    ABSENCE_GRACE_OVER = "key_in_neither_for_30_s"
    KEY_WITH_OTHER_TEXT = "key_with_other_text"
    IN_TRANSCRIPT = "in_transcript"
    NOT_IN_TRANSCRIPT = "stream_ended_not_in_transcript"
    NO_TRANSCRIPT = "stream_ended_no_transcript"
    RECIPIENT_LEFT = "recipient_left"
    RECIPIENT_REPLACED = "recipient_left_not_in_transcript"
    PERSON_DROPPED = "person_dropped"
    PERSON_SENT_AGAIN = "person_sent_again"


class Policy(str, Enum):
    QUEUE = "queue"
    MONITOR = "monitor"


Table = Mapping[tuple[State, Event], State]

_P, _H, _A, _S, _U, _C, _W = (
    State.PENDING,
    State.HANDED_OVER,
    State.ACCEPTED,
    State.SEEN,
    State.UNCERTAIN,
    State.CONFLICT,
    State.WITHDRAWN,
)

QUEUE_TABLE: Table = {
    (_P, Event.HAND_OVER_RECORDED): _H,
    (_P, Event.PERSON_DROPPED): _W,
    (_P, Event.PERSON_SENT_AGAIN): _W,
    (_P, Event.RECIPIENT_LEFT): _W,
    (_H, Event.NOT_WRITTEN): _P,
    (_H, Event.ANSWERED): _A,
    (_H, Event.REFUSED_WITHOUT_EFFECT): _P,
    (_H, Event.ANSWER_LOST): _U,
    (_H, Event.WAITER_DIED): _U,
    (_H, Event.TAKEN_OVER): _U,
    (_H, Event.KEY_IN_ITEMS): _S,
    (_H, Event.KEY_WITH_OTHER_TEXT): _C,
    (_H, Event.RECIPIENT_LEFT): _H,
    (_A, Event.KEY_IN_QUEUE): _A,
    (_A, Event.KEY_IN_ITEMS): _S,
    (_A, Event.KEY_IN_NEITHER): _A,
    (_A, Event.ABSENCE_GRACE_OVER): _U,
    (_A, Event.KEY_WITH_OTHER_TEXT): _C,
    (_A, Event.PERSON_DROPPED): _W,
    (_A, Event.PERSON_SENT_AGAIN): _W,
    (_A, Event.RECIPIENT_LEFT): _A,
    (_U, Event.NOT_WRITTEN): _P,
    (_U, Event.ANSWERED): _A,
    (_U, Event.REFUSED_WITHOUT_EFFECT): _P,
    (_U, Event.KEY_IN_QUEUE): _A,
    (_U, Event.KEY_IN_ITEMS): _S,
    (_U, Event.KEY_IN_NEITHER): _U,
    (_U, Event.KEY_WITH_OTHER_TEXT): _C,
    (_U, Event.PERSON_DROPPED): _W,
    (_U, Event.PERSON_SENT_AGAIN): _W,
    (_U, Event.RECIPIENT_LEFT): _U,
    (_C, Event.KEY_IN_QUEUE): _C,
    (_C, Event.KEY_IN_ITEMS): _C,
    (_C, Event.KEY_IN_NEITHER): _C,
    (_C, Event.KEY_WITH_OTHER_TEXT): _C,
    (_C, Event.PERSON_DROPPED): _W,
    (_C, Event.PERSON_SENT_AGAIN): _W,
    (_W, Event.KEY_IN_ITEMS): _S,
}

# Under `monitor`, a failed write or a dead waiter decides nothing: the transcript is looked at first,
# and what it holds (or its absence) is the event.
MONITOR_TABLE: Table = {
    (_P, Event.HAND_OVER_RECORDED): _H,
    (_P, Event.PERSON_DROPPED): _W,
    (_P, Event.PERSON_SENT_AGAIN): _W,
    (_P, Event.RECIPIENT_LEFT): _W,
    (_H, Event.NOT_WRITTEN): _P,
    (_H, Event.TAKEN): _A,
    (_H, Event.WRITE_FAILED): _H,
    (_H, Event.WAITER_DIED): _H,
    (_H, Event.TAKEN_OVER): _H,
    (_H, Event.IN_TRANSCRIPT): _S,
    (_H, Event.NOT_IN_TRANSCRIPT): _P,
    (_H, Event.NO_TRANSCRIPT): _P,
    (_H, Event.RECIPIENT_LEFT): _H,
    (_H, Event.RECIPIENT_REPLACED): _W,
    (_A, Event.IN_TRANSCRIPT): _S,
    (_A, Event.NOT_IN_TRANSCRIPT): _P,
    (_A, Event.NO_TRANSCRIPT): _A,
    (_A, Event.RECIPIENT_LEFT): _A,
    (_A, Event.RECIPIENT_REPLACED): _W,
}

TABLES: Mapping[Policy, Table] = {Policy.QUEUE: QUEUE_TABLE, Policy.MONITOR: MONITOR_TABLE}

BROKEN_OFF: Mapping[Policy, Event] = {Policy.QUEUE: Event.ANSWER_LOST, Policy.MONITOR: Event.WRITE_FAILED}
"""What a hand-over was that ended without a word of what became of it, in a waiter that lives."""

OF_ONE_HAND_OVER = frozenset(
    {
        Event.NOT_WRITTEN,
        Event.ANSWER_LOST,
        Event.TAKEN,
        Event.WRITE_FAILED,
        Event.WAITER_DIED,
        Event.TAKEN_OVER,
    }
)
"""How a hand-over went. It says nothing of a later one."""

MAY_BE_LATE = OF_ONE_HAND_OVER | frozenset(
    {
        Event.ANSWERED,
        Event.REFUSED_WITHOUT_EFFECT,
        Event.KEY_IN_QUEUE,
        Event.KEY_IN_ITEMS,
        Event.KEY_IN_NEITHER,
        Event.ABSENCE_GRACE_OVER,
        Event.KEY_WITH_OTHER_TEXT,
        Event.IN_TRANSCRIPT,
        Event.NOT_IN_TRANSCRIPT,
        Event.NO_TRANSCRIPT,
        Event.RECIPIENT_REPLACED,
    }
)
"""Evidence, and what became of a hand-over. A waiter that was stopped for a while, or was taken for dead, tells it
of a delivery that has moved on meanwhile, and then it says nothing new."""

REPEATS = frozenset({(_H, Event.NOT_IN_TRANSCRIPT), (_H, Event.NO_TRANSCRIPT), (_A, Event.NOT_IN_TRANSCRIPT)})
"""The transitions after which the next print says `repeat`: something may have been shown."""


def next_state(policy: Policy, state: State, event: Event) -> State:
    """The state after the event. Raises IllegalTransition for a pair that the table does not hold."""
    try:
        return TABLES[policy][state, event]
    except KeyError:
        raise IllegalTransition(policy.value, state.value, event.value) from None
