"""What the page shows, as JSON: the channel's own readings, each no larger than its bound. Names are those of
`channel/conversation.py`, `channel/inspection.py` and `channel/presence.py`; times are wall-clock milliseconds."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from channel.conversation import Conversation, OnItsWay, Said
from channel.delivery_states import TABLES, Event, Policy, State
from channel.errors import UnknownDelivery
from channel.inspection import Inspected, Inspection
from channel.last_hour import last_hour
from channel.membership import Seat
from channel.messages import ID_MAX
from harness_adapters.composition import Channel

ROOMS_MAX = 100
"""More than a person looks through; those with the newest messages."""

PAGE_MESSAGES = 50

TEXT_CHARACTERS = 4_000
"""Of each text; the page asks for the whole of one."""

STUCK_MAX = 20
"""A person decides about them one by one."""

JsonObject = dict[str, Any]

_SETTLED = frozenset({State.SEEN, State.WITHDRAWN})

_LOOKED_FOR = frozenset({State.HANDED_OVER, State.ACCEPTED, State.UNCERTAIN, State.CONFLICT})


class Snapshots:
    """Reads an open channel. Each raises StoreUnavailable."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._conversation = Conversation(channel.database)
        self._inspection = Inspection(channel.database, channel.clock)

    async def rooms(self) -> JsonObject:
        """The rooms with their roles as they are at this moment."""
        found = await self._conversation.rooms(ROOMS_MAX + 1)
        seats: dict[str, list[JsonObject]] = {}
        for seat in await self._channel.membership.seats():
            seats.setdefault(seat.room, []).append(_role(seat))
        return {
            "rooms": [
                {"name": room.name, "policy": room.policy, "roles": seats.get(room.name, [])}
                for room in found[:ROOMS_MAX]
            ],
            "are_more": len(found) > ROOMS_MAX,
        }

    async def messages(self, room: str, before_message_id: int = ID_MAX) -> list[JsonObject]:
        """PAGE_MESSAGES of a room before one, oldest first; fewer: there is none before them."""
        page = await self._conversation.page(room, PAGE_MESSAGES, TEXT_CHARACTERS, before_message_id)
        return [_message(said) for said in page]

    async def messages_of(self, message_ids: Sequence[int]) -> list[JsonObject]:
        """These messages, oldest first, without those that are gone."""
        return [_message(said) for said in await self._conversation.of(message_ids, TEXT_CHARACTERS)]

    async def text(self, message_id: int) -> JsonObject:
        """A whole text. Raises UnknownMessage."""
        return {"text": (await self._channel.deliveries.message(message_id)).text}

    async def stuck(self) -> JsonObject:
        """The newest deliveries that wait for a person's decision, with all that is recorded of each."""
        found = await self._inspection.find(STUCK_MAX + 1, states=[State.UNCERTAIN, State.CONFLICT])
        deliveries = []
        for each in found[:STUCK_MAX]:
            with suppress(UnknownDelivery):  # trimmed meanwhile
                deliveries.append(await self.delivery(each.delivery_id))
        return {"deliveries": deliveries, "are_more": len(found) > STUCK_MAX}

    async def inspected(self, delivery_id: int) -> Inspected:
        """Raises UnknownDelivery."""
        return await self._inspection.show(delivery_id)

    async def delivery(self, delivery_id: int) -> JsonObject:
        """One delivery with its events. Raises UnknownDelivery."""
        shown = await self.inspected(delivery_id)
        events = [event._asdict() for event in shown.events]
        return {**shown._asdict(), "events": events, "decisions": _decisions(shown.state, shown.policy)}

    async def hour(self) -> JsonObject:
        """The last hour, minute by minute."""
        hour = await last_hour(self._channel.database, self._channel.clock)
        minutes = [
            {
                **minute._asdict(),
                "accepted": minute.accepted and minute.accepted._asdict(),
                "seen": minute.seen and minute.seen._asdict(),
            }
            for minute in hour.minutes
        ]
        return {"minutes": minutes, "is_whole": hour.is_whole}


def _role(seat: Seat) -> JsonObject:
    role = seat.role
    return {
        "name": role.name,
        "harness": role.harness,
        "connected": role.connected,
        "waiter_active": role.waiter_active,
        "offline_since_ms": role.offline_since_ms,
        "detail": role.detail,
        "waiting": role.waiting,
    }


def is_settled(message: JsonObject) -> bool:
    """Whether nothing more is expected to happen to it."""
    return all(State(delivery["state"]) in _SETTLED for delivery in message["deliveries"])


def _message(said: Said) -> JsonObject:
    return {**said._asdict(), "deliveries": [_delivery(each) for each in said.deliveries]}


def _delivery(delivery: OnItsWay) -> JsonObject:
    return {**delivery._asdict(), "decisions": _decisions(delivery.state, delivery.policy)}


def _decisions(state: str, policy: str | None) -> list[str]:
    """What a person may do now, by the tables; what was never handed over has no policy, and both say the same."""
    table, before = TABLES[Policy(policy or Policy.QUEUE)], State(state)
    possible = ["look"] if before in _LOOKED_FOR else []
    possible += ["resend"] if (before, Event.PERSON_SENT_AGAIN) in table else []
    possible += ["drop"] if (before, Event.PERSON_DROPPED) in table else []
    return possible
