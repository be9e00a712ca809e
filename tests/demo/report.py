"""What happened to each message, read from the channel's file, as a table for people."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_EVENTS = """
SELECT m.message_id, m.sender, r.name AS recipient, m.text, e.to_state, e.at_ms - m.created_at_ms AS after_ms
FROM delivery_events e JOIN deliveries d ON d.delivery_id = e.delivery_id
  JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
ORDER BY m.message_id, e.event_id
"""


@dataclass(frozen=True)
class Step:
    """A state that a delivery came to, and milliseconds since its message was stored."""

    state: str
    after_ms: int


@dataclass(frozen=True)
class Sent:
    """One message on its way to one role. `steps`: all its states, the first being pending."""

    message_id: int
    sender: str
    recipient: str
    text: str
    steps: tuple[Step, ...]


def all_sent(database: Path) -> list[Sent]:
    """Every delivery of the channel, in the order of the messages."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute(_EVENTS).fetchall()
    finally:
        connection.close()
    sent: dict[int, Sent] = {}
    for message_id, sender, recipient, text, state, after_ms in rows:
        steps = sent[message_id].steps if message_id in sent else ()
        sent[message_id] = Sent(message_id, sender, recipient, text, (*steps, Step(state, after_ms)))
    return list(sent.values())


def table(sent: Sequence[Sent], arrived: Sequence[str]) -> str:
    """One row a message: from, to, how it begins, how it arrived, and each state with its time."""
    rows = [("id", "from", "to", "text", "arrived", "states, and ms since it was sent")]
    for each, how in zip(sent, arrived, strict=True):
        states = "  ".join(f"{step.state} {step.after_ms}" for step in each.steps)
        rows.append((str(each.message_id), each.sender, each.recipient, _begins(each.text), how, states))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(f"  {line.rstrip()}" for line in lines)


def _begins(text: str) -> str:
    first_line = text.split("\n", 1)[0]
    shown = first_line if len(first_line) <= 30 else first_line[:29] + "…"
    return f"{shown!r}, {len(text):,} characters" if shown != text else repr(text)
