"""What a person sees of deliveries. It only reads, and no more than is shown, however many were handled."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from channel.clock import Clock
from channel.database import Database, Row
from channel.delivery_states import Policy, State
from channel.errors import UnknownDelivery
from channel.messages import ID_DIGITS_MAX, key_of
from channel.names import normalized
from channel.queries import sql

TEXT_BEGINS_CHARACTERS = 200
"""Enough to know a message again; `agent-channel message` shows it whole."""


class Listed(NamedTuple):
    """One line of a list. Times are wall-clock milliseconds."""

    delivery_id: int
    message_id: int
    state: str
    room: str
    sender: str
    recipient: str
    created_at_ms: int
    changed_at_ms: int
    detail: str
    harness: str
    """Of the recipient."""


class Happened(NamedTuple):
    """One transition of a delivery."""

    at_ms: int
    event: str
    from_state: str | None
    to_state: str
    why: str


class Inspected(NamedTuple):
    """One delivery with all that is recorded of it.

    From `policy` on, None where it was never handed over. `key`: under which a Codex thread knows it.
    `absent_since_ms`: the first of the looks in a row that found it nowhere.
    """

    delivery_id: int
    message_id: int
    state: str
    room: str
    sender: str
    recipient: str
    created_at_ms: int
    changed_at_ms: int
    detail: str
    text_begins: str
    text_characters: int
    repeats: int
    policy: str | None
    address: str | None
    key: str | None
    place: str | None
    text_sha256: str | None
    handed_over_at_ms: int | None
    accepted_at_ms: int | None
    seen_at_ms: int | None
    receiver_ref: str | None
    looks: int
    next_look_at_ms: int | None
    absent_since_ms: int | None
    events: tuple[Happened, ...]


class Inspection:
    """Lists deliveries and shows one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(
        self,
        limit: int,
        *,
        states: Sequence[State] = (),
        room: str | None = None,
        role: str | None = None,
        older_than_ms: int = 0,
    ) -> list[Listed]:
        """The newest deliveries, `limit` at most; in any state where none is named, of any age from `older_than_ms`."""
        rows = await self._database.read(
            sql("list_deliveries"),
            {
                "states": json.dumps([state.value for state in states or State]),
                "room": None if room is None else normalized(room),
                "role": None if role is None else normalized(role),
                "sent_before_ms": self._clock.now_ms() - older_than_ms,
                "limit": limit,
            },
        )
        return [Listed(*row) for row in rows]

    async def delivery_id(self, name: str) -> int:
        """The id that `name` is: a delivery's own, or MESSAGE@ROLE. Raises UnknownDelivery."""
        message_id, at, role = name.partition("@")
        if not message_id.isdecimal() or len(message_id) > ID_DIGITS_MAX:
            raise UnknownDelivery(name)
        if not at:
            return int(message_id)
        found = await self._database.read(sql("delivery_to"), {"message_id": int(message_id), "name": normalized(role)})
        if len(found) != 1:
            raise UnknownDelivery(name)
        return int(found[0]["delivery_id"])

    async def show(self, delivery_id: int) -> Inspected:
        """Raises UnknownDelivery."""
        row = await self._database.read_one(
            sql("delivery"), {"delivery_id": delivery_id, "characters": TEXT_BEGINS_CHARACTERS}
        )
        if row is None:
            raise UnknownDelivery(str(delivery_id))
        events = await self._database.read(sql("delivery_events"), {"delivery_id": delivery_id})
        channel = await self._database.read_one(sql("channel_id"))
        assert channel is not None  # it was made before the first role
        return _inspected(row, channel["id"], events)


def _inspected(row: Row, channel_id: str, events: Sequence[Row]) -> Inspected:
    stored: dict[str, Any] = dict(row)
    stored["key"] = key_of(channel_id, row["message_id"]) if row["policy"] == Policy.QUEUE.value else None
    stored["events"] = tuple(Happened(*event) for event in events)
    return Inspected(**{name: stored[name] for name in Inspected._fields})
