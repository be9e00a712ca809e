"""What the channel holds, as values: a message, a delivery on its way, and the key it is known by.

Values on a streamer's way to its start are named tuples: a frozen dataclass takes a millisecond to make, ten
times as long.
"""

from typing import NamedTuple

from channel.delivery_states import Event, State

ID_MAX = 2**63 - 1
"""SQLite's largest integer: a larger one can't even be asked for."""

ID_DIGITS_MAX = 18
"""A number of so many digits is below it, whatever they are."""


def key_of(channel_id: str, message_id: int) -> str:
    """The name under which a Codex thread can recognise a message again; unique for ever in a thread."""
    return f"agent-channel:{channel_id}:{message_id}"


class Message(NamedTuple):
    """A text sent once. `created_at_ms`: wall clock."""

    message_id: int
    room: str
    sender: str
    text: str
    reply_to: int | None
    created_at_ms: int


class PendingDelivery(NamedTuple):
    """A message that waits to be handed over; `repeats` earlier hand-overs may have been shown."""

    delivery_id: int
    message: Message
    recipient: str
    repeats: int


class HandOver(NamedTuple):
    """What is copied into a delivery before its effect: the exact text's hash, and where evidence will stand."""

    delivery_id: int
    text_sha256: str
    place: str = ""
    detail: str = ""


class OpenDelivery(NamedTuple):
    """A delivery that was handed over and is not settled, or was withdrawn after it.

    `elsewhere`: it was given at another address than the one that looks, whose process is gone.
    `of_former_term`: its waiter is gone, so nothing more will be written for it.
    `place`: what the receiver noted at the hand-over. `role_is_replaced`: another session holds the role now.
    """

    delivery_id: int
    message_id: int
    state: State
    text_sha256: str
    place: str
    handed_over_at_ms: int
    of_former_term: bool
    elsewhere: bool
    role_is_replaced: bool
    next_look_at_ms: int | None


class Outcome(NamedTuple):
    """What a receiver says of one delivery; `reference` is the receiver's own name for it.

    `term`: of the hand-over that it is said of, where it is of no other; None: of whichever is the newest.
    """

    delivery_id: int
    event: Event
    why: str = ""
    reference: str | None = None
    term: int | None = None
