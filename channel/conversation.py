"""What was said in a room, a page at a time, with what became of each delivery. It only reads."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from channel.database import Database, Row
from channel.errors import UnknownRoom
from channel.messages import ID_MAX
from channel.names import normalized
from channel.queries import sql

ROOMS_NAMED_MAX = 20
"""To who asked for another."""


class RoomSummary(NamedTuple):
    """A room; `newest_message_id`: None where nothing was said yet, or all of it was trimmed."""

    room_id: int
    name: str
    policy: str
    newest_message_id: int | None


class OnItsWay(NamedTuple):
    """One delivery of a message. Times are wall-clock milliseconds; None where it did not come so far.

    `policy`: None where it was never handed over. `absent_since_ms`: the first look of those that found it nowhere.
    """

    delivery_id: int
    message_id: int
    recipient: str
    state: str
    detail: str
    policy: str | None
    repeats: int
    changed_at_ms: int
    handed_over_at_ms: int | None
    accepted_at_ms: int | None
    seen_at_ms: int | None
    looks: int
    next_look_at_ms: int | None
    absent_since_ms: int | None


class Said(NamedTuple):
    """A message with its deliveries. `is_notice`: of the channel itself. `text_begins`: what was asked for of it."""

    message_id: int
    sender: str
    is_notice: bool
    reply_to: int | None
    created_at_ms: int
    text_begins: str
    text_characters: int
    deliveries: tuple[OnItsWay, ...]


class Conversation:
    """Reads rooms and what was said in them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rooms(self, limit: int) -> list[RoomSummary]:
        """The rooms, those with the newest messages first, `limit` at most."""
        return [RoomSummary(*row) for row in await self._database.read(sql("rooms_by_activity"), {"limit": limit})]

    async def page(self, room: str, limit: int, characters: int, before_message_id: int = ID_MAX) -> tuple[Said, ...]:
        """The newest messages of a room before one, oldest first; of each text `characters` at most.

        Empty for a room that is not there.
        """
        rows = await self._database.read(
            sql("said_in_room"),
            {
                "room": normalized(room),
                "before_id": before_message_id,
                "characters": characters,
                "limit": limit,
            },
        )
        return await self._said(rows[::-1])

    async def after(self, room: str, message_id: int, limit: int, characters: int) -> tuple[Said, ...]:
        """The messages of a room that came after one, the oldest first; as `page` else."""
        rows = await self._database.read(
            sql("said_after"),
            {"room": normalized(room), "after_id": message_id, "characters": characters, "limit": limit},
        )
        return await self._said(rows)

    async def of(self, message_ids: Sequence[int], characters: int) -> tuple[Said, ...]:
        """These messages, the oldest first, without those that are gone; as `page` else."""
        given = {"message_ids": json.dumps(message_ids), "characters": characters}
        return await self._said(await self._database.read(sql("said"), given))

    async def last_before(self, wall_clock_ms: int) -> int:
        """The newest message of all rooms that was sent before a time; 0: there is none."""
        row = await self._database.read_one(sql("last_before"), {"before_ms": wall_clock_ms})
        return row["message_id"] if row else 0

    async def room_id(self, room: str) -> int:
        """Raises UnknownRoom."""
        row = await self._database.read_one(sql("room_by_name"), {"room": normalized(room)})
        if row is None:
            raise UnknownRoom(room, [each.name for each in await self.rooms(ROOMS_NAMED_MAX)])
        return int(row["room_id"])

    async def _said(self, rows: Sequence[Row]) -> tuple[Said, ...]:
        deliveries = await self._deliveries_of([row["message_id"] for row in rows])
        return tuple(_said(row, deliveries.get(row["message_id"], [])) for row in rows)

    async def _deliveries_of(self, message_ids: list[int]) -> dict[int, list[OnItsWay]]:
        found: dict[int, list[OnItsWay]] = {}
        for row in await self._database.read(sql("deliveries_of_messages"), {"message_ids": json.dumps(message_ids)}):
            found.setdefault(row["message_id"], []).append(OnItsWay(*row))
        return found


def _said(row: Row, deliveries: list[OnItsWay]) -> Said:
    return Said(
        message_id=row["message_id"],
        sender=row["sender"],
        is_notice=row["sender_role_id"] is None,
        reply_to=row["reply_to"],
        created_at_ms=row["created_at_ms"],
        text_begins=row["text_begins"],
        text_characters=row["text_characters"],
        deliveries=tuple(deliveries),
    )
