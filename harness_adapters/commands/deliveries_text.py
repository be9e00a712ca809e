"""Deliveries as a person reads them in a terminal. What others wrote is shown with its control characters escaped."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from channel.delivery_states import State
from channel.inspection import Inspected, Listed
from channel.presence import PERSON
from harness_adapters.commands.output import aligned, printable
from waiters.age import age_in_words
from waiters.status import at

if TYPE_CHECKING:
    from harness_adapters.one_look import Look

DETAIL_CHARACTERS_MAX = 60
"""Of a list; `show` has all of it."""

_HEAD = ("ID", "MESSAGE", "AGE", "STATE", "ROOM", "FROM", "TO", "DETAIL")


def list_text(listed: Sequence[Listed], now_ms: int, *, are_more: bool) -> str:
    """A table, with a last line if there are more than are shown."""
    if not listed:
        return "No delivery is like that.\n"
    rows = [
        _HEAD,
        *(
            (
                str(each.delivery_id),
                str(each.message_id),
                age_text(now_ms - each.created_at_ms),
                each.state,
                each.room,
                each.sender,
                each.recipient,
                cut(printable(each.detail or _why_it_waits(each))),
            )
            for each in listed
        ),
    ]
    return aligned(rows) + ("There are more: see --limit, and what narrows the list down.\n" if are_more else "")


def show_text(shown: Inspected, now_ms: int) -> str:
    """All of one delivery, and then what happened to it, a line each."""
    text = printable(shown.text_begins) + ("…" if len(shown.text_begins) < shown.text_characters else "")
    rows = [
        ("delivery", f"{shown.delivery_id} of message {shown.message_id}"),
        ("state", f"{shown.state} since {at(shown.changed_at_ms)}"),
        ("detail", printable(shown.detail)),
        ("room", shown.room),
        ("from", shown.sender),
        ("to", shown.recipient),
        ("sent", f"{at(shown.created_at_ms)}, {age_text(now_ms - shown.created_at_ms)} ago"),
        ("text", f"{text} ({shown.text_characters:,} characters)"),
        ("given to", printable(shown.address or "")),
        ("key", shown.key or ""),
        ("in", printable(shown.place or "")),
        ("sha256", shown.text_sha256 or ""),
        ("handed over", _time(shown.handed_over_at_ms)),
        ("accepted", _time(shown.accepted_at_ms)),
        ("seen", _time(shown.seen_at_ms)),
        ("repeats", str(shown.repeats or "")),
        ("absent since", _time(shown.absent_since_ms)),
        ("next look", _time(shown.next_look_at_ms)),
    ]
    happened = [
        (f"  {at(each.at_ms)}", each.event, f"-> {each.to_state}", printable(each.why)) for each in shown.events
    ]
    return aligned([row for row in rows if row[1]]) + aligned(happened)


def look_text(look: "Look") -> str:
    """What was looked at, and what was found."""
    return "".join(f"looked at {printable(each)}\n" for each in look.looked_at) + f"found: {look.found}\n"


def _why_it_waits(listed: Listed) -> str:
    return "a person has not read it yet" if listed.harness == PERSON and listed.state == State.PENDING.value else ""


def age_text(age_ms: int) -> str:
    return age_in_words(age_ms) or "<1m"


def _time(wall_clock_ms: int | None) -> str:
    return "" if wall_clock_ms is None else at(wall_clock_ms)


def cut(text: str) -> str:
    return text if len(text) <= DETAIL_CHARACTERS_MAX else text[: DETAIL_CHARACTERS_MAX - 1] + "…"
