"""Messages as a person reads them in a terminal: a line that says who wrote to whom, then the text, set in.

Text of peers can neither steer the terminal nor pass for another message: its control characters are escaped, and
every line of it is set in, also where the terminal would begin one.
"""

from collections.abc import Iterator
from typing import Any

from channel.conversation import Said
from channel.delivery_states import State
from harness_adapters.commands.output import printable
from harness_adapters.commands.terminal import BOLD, PLAIN, wrapped
from waiters.status import at

INDENT = "    "

SHOWN_CHARACTERS_MAX = 2_000
"""Of a text, unless the whole is asked for: about a screen."""

_SETTLED = (State.ACCEPTED.value, State.SEEN.value)


def said_text(said: Said, columns: int | None = None, *, bold: bool = False) -> str:
    """One message with its head. `columns`: the terminal's; None: lines stay as long as they are."""
    head = f"{said.message_id}  {said.sender} -> {_recipients(said)}  {at(said.created_at_ms)}"
    if said.reply_to is not None:
        head += f"  re {said.reply_to}"
    first, *rest = _lines(printable(head), columns)
    lines = [f"{BOLD}{first}{PLAIN}" if bold else first, *(INDENT + each for each in rest)]
    lines += [f"{INDENT}{each}".rstrip() for line in _text_of(said) for each in _lines(line, columns)]
    return "".join(f"{line}\n" for line in lines)


def printable_lines(text: str) -> str:
    """A text as lines, with tabs, but with nothing else that could steer a terminal or hide in it."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def said_json(said: Said, room: str) -> dict[str, Any]:
    """The same for a program, with the text as it was sent."""
    return {
        "message_id": said.message_id,
        "room": room,
        "sender": said.sender,
        "is_notice": said.is_notice,
        "reply_to": said.reply_to,
        "created_at_ms": said.created_at_ms,
        "text": said.text_begins,
        "to": [
            {"delivery_id": each.delivery_id, "role": each.recipient, "state": each.state} for each in said.deliveries
        ],
    }


def _recipients(said: Said) -> str:
    """Each with its state, where something may be left to do."""
    return ", ".join(
        each.recipient + ("" if each.state in _SETTLED else f" ({each.state})") for each in said.deliveries
    )


def _text_of(said: Said) -> Iterator[str]:
    yield from printable_lines(said.text_begins).split("\n")
    if len(said.text_begins) < said.text_characters:
        yield f"… {said.text_characters:,} characters; all of it: agent-channel message {said.message_id}"


def _lines(line: str, columns: int | None) -> Iterator[str]:
    if columns is None:
        yield line
    else:
        yield from wrapped(line.expandtabs(), columns - len(INDENT))
