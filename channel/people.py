"""A person as a participant: a role of their own in a room, for which nothing waits and which nothing wakes.

A person is one connection, keyed by their account. What is sent to their role waits (`pending`) until a terminal of
theirs has shown it; then it is `accepted`: the terminal has it, and nobody says that it was read.
"""

import json
from collections.abc import Collection, Sequence
from hashlib import sha256

from channel.conversation import Conversation
from channel.database import Database
from channel.deliveries import Deliveries
from channel.delivery_states import Event, Policy, State
from channel.errors import HeldByAnother, LeaseHeld, NameTaken, NobodyElse, SentToSelf, UnknownRole
from channel.leases import Leases
from channel.membership import Caller, Membership, OwnRole
from channel.messages import HandOver, Outcome
from channel.names import check_name, check_text, normalized
from channel.presence import PERSON
from channel.queries import sql
from channel.sending import Sending, Sent

DEFAULT_NAME = "person"
SHOWN = "shown on a terminal"


def person(account: int, process: str) -> Caller:
    """The person of an account (its uid); `process`: identity of the one that speaks for them now."""
    return Caller(f"{PERSON}:{account}", PERSON, process, process)


class People:
    """What a person does in rooms."""

    def __init__(
        self, database: Database, membership: Membership, sending: Sending, deliveries: Deliveries, leases: Leases
    ) -> None:
        self._database = database
        self._membership = membership
        self._sending = sending
        self._deliveries = deliveries
        self._leases = leases

    async def send(self, who: Caller, room: str, text: str, to: Sequence[str] | None, name: str | None = None) -> Sent:
        """Send as the role that the person holds in `room`, under `name` if that is given, joining if need be.

        Nobody else's role is taken over. Raises UnknownRoom, HeldByAnother, BadName, and what `Sending.send` does.
        """
        check_text(text)  # before anything is stored
        room_id = await Conversation(self._database).room_id(room)
        await self._hold_role(who, room, room_id, to, name)
        return await self._sending.send(who.address, text, to, room)

    async def was_shown(self, who: Caller, message_ids: Collection[int]) -> None:
        """A terminal of theirs has shown these messages: of those to them, that is recorded."""
        found = await self._database.read(
            sql("unshown_of_messages"), {"address": who.address, "message_ids": json.dumps(sorted(message_ids))}
        )
        if not found:
            return
        try:
            lease = await self._leases.take(who.address, who.process, "")
        except LeaseHeld:
            return  # another terminal of theirs is just about to say so
        waiting = [
            HandOver(row["delivery_id"], sha256(row["text"].encode()).hexdigest(), "", SHOWN)
            for row in found
            if row["state"] == State.PENDING.value
        ]
        given = await self._deliveries.record_hand_over(lease, Policy.MONITOR, waiting)
        # It is recorded once it was shown: one that another command got no further with was shown too.
        given |= {row["delivery_id"] for row in found if row["state"] == State.HANDED_OVER.value}
        # Nothing more will ever be learnt of it.
        events = (Event.TAKEN, Event.NO_TRANSCRIPT)
        await self._deliveries.record([Outcome(each, event, SHOWN) for each in sorted(given) for event in events])
        await self._leases.release(lease)

    async def _hold_role(
        self, who: Caller, room: str, room_id: int, to: Sequence[str] | None, name: str | None
    ) -> None:
        own = next((role for role in await self._membership.roles_of(who.address) if role.room_id == room_id), None)
        is_named_so = own is not None and name in (None, own.name)
        if not is_named_so:  # else the sending itself checks, before it stores anything
            await self._require_recipients(room, room_id, to, own)
        if own is not None:
            await self._membership.recognise(who)
            if name is not None and normalized(name) != own.name:
                await self._rename(who, room, name)
            return
        name = check_name(DEFAULT_NAME if name is None else name, "role")
        await self._membership.join(who, room, name, None, take_over=False)

    async def _require_recipients(self, room: str, room_id: int, to: Sequence[str] | None, own: OwnRole | None) -> None:
        """Who can be sent to nobody gets no role and no other name. Raises UnknownRole, SentToSelf, NobodyElse."""
        others = [
            view for view in await self._membership.roles_in(room_id) if own is None or view.role_id != own.role_id
        ]
        names = [view.name for view in others]
        for recipient in map(normalized, to or ()):
            if own is not None and recipient == own.name:
                raise SentToSelf(recipient)
            if recipient not in names:
                now = await self._database.read_one(sql("now_called"), {"room_id": room_id, "name": recipient})
                raise UnknownRole(room, recipient, names, now["name"] if now else None)
        if not to and all(view.long_absent for view in others):
            raise NobodyElse(room, names)

    async def _rename(self, who: Caller, room: str, name: str) -> None:
        try:
            await self._membership.rename(who.address, name, room)
        except NameTaken as taken:
            raise HeldByAnother(room, name) from taken
