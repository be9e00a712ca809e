"""From a text to a message with all its deliveries, in one transaction: a message to all is atomic."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database, Row, Transaction
from channel.errors import NobodyElse, SentToSelf, UnknownRole
from channel.membership import OwnRole, own_role
from channel.names import check_name, check_text, normalized
from channel.presence import Presence, RoleView
from channel.queries import sql
from channel.wakeups import ring


class Sent(NamedTuple):
    """A stored message. `own`: the sender as others see it; `skipped`: roles absent for over 7 days and not named."""

    message_id: int
    sender: OwnRole
    own: RoleView
    recipients: tuple[RoleView, ...]
    skipped: tuple[RoleView, ...]


class Sending:
    """Stores messages, and wakes those that they are for."""

    def __init__(self, database: Database, clock: Clock, presence: Presence) -> None:
        self._database = database
        self._clock = clock
        self._presence = presence

    async def send(self, address: str, text: str, to: Sequence[str] | None, room: str | None) -> Sent:
        """Store `text` from the session at `address` to the roles named in `to`, or to all other roles.

        On return the message is committed, as durably as the database was opened, and the bell of each recipient's
        waiter is rung, whether it seems to live or not.
        Raises BadText, BadName, NotJoined, RoomNotNamed, RoleLost, UnknownRole, SentToSelf, NobodyElse.
        """
        check_text(text)
        async with self._database.transaction("send") as transaction:
            sender, rows = await self._room_of(transaction, address, room)
            [own] = [row for row in rows if row["role_id"] == sender.role_id]
            others = [row for row in rows if row is not own]
            # Of those who are named none is judged before the bell: that asks the system for each.
            views = {} if to else {row["role_id"]: self._presence.view(row) for row in others}
            skipped = [view for view in views.values() if view.long_absent]
            if to:
                recipients = await self._named(transaction, sender, others, to)
            else:
                recipients = [row for row in others if not views[row["role_id"]].long_absent]
                if not recipients:
                    raise NobodyElse(sender.room, [view.name for view in skipped])
            message_id = await self._store(transaction, sender, text, [row["role_id"] for row in recipients])
        ring(row["bell"] for row in recipients)
        to_whom = tuple(views.get(row["role_id"]) or self._presence.view(row) for row in recipients)
        return Sent(message_id, sender, self._presence.view(own), to_whom, tuple(skipped))

    async def _room_of(self, transaction: Transaction, address: str, room: str | None) -> tuple[OwnRole, list[Row]]:
        """The role that a session sends from, and all roles of its room: one statement where all is well."""
        rows = await transaction.all(
            sql("sender_room"), {"address": address, "room": normalized(room) if room is not None else None}
        )
        if len({row["own_role_id"] for row in rows}) != 1:
            await own_role(transaction, address, room)
            raise AssertionError("own_role said which it is, and sender_room did not")
        first = rows[0]
        return OwnRole(first["own_role_id"], first["room_id"], first["room"], first["own_name"]), rows

    async def _named(
        self, transaction: Transaction, sender: OwnRole, others: Sequence[Row], to: Sequence[str]
    ) -> list[Row]:
        by_name = {str(row["name"]): row for row in others}
        to = [check_name(name, "role") for name in to]
        for name in to:
            if name == sender.name:
                raise SentToSelf(name)
            if name not in by_name:
                row = await transaction.one(sql("now_called"), {"room_id": sender.room_id, "name": name})
                raise UnknownRole(sender.room, name, list(by_name), row["name"] if row else None)
        return [by_name[name] for name in dict.fromkeys(to)]

    async def _store(self, transaction: Transaction, sender: OwnRole, text: str, role_ids: Sequence[int]) -> int:
        rows = await transaction.last(
            sql("add_message"),
            {
                "room_id": sender.room_id,
                "sender_role_id": sender.role_id,
                "sender": sender.name,
                "text": text,
                "role_ids": json.dumps(role_ids),
                "now_ms": self._clock.now_ms(),
            },
        )
        return int(rows[0]["message_id"])
