"""What a person decides about a delivery that is stuck: send its text again, or drop it.

A text sent again while the first may still appear would be read twice, so that is refused unless forced.
What a state allows at all is in the tables of `delivery_states.py`, forced or not.
"""

from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database, Row, Transaction
from channel.deliveries import ABSENCE_GRACE_MS
from channel.delivery_states import TABLES, Event, Policy, State
from channel.errors import DecisionRefused, UnknownDelivery
from channel.queries import sql

_MAY_APPEAR = {
    State.PENDING: "it waits, and is delivered when its recipient can be given it",
    State.ACCEPTED: "the receiver has it",
}
"""Why the text of a delivery in this state is not sent again, though its table may allow it."""

_NEVER = {
    State.HANDED_OVER: "it is being given to its recipient now, or its waiter died meanwhile and the next one looks",
    State.ACCEPTED: "the receiver has it, and it can't be taken back",
    State.SEEN: "its recipient has read it",
    State.WITHDRAWN: "nothing is left to decide",
}
"""Why a state allows no decision where its table has none."""


class SentAgain(NamedTuple):
    """The new message and its delivery. `address`: the session whose waiter is to be woken."""

    message_id: int
    delivery_id: int
    recipient: str
    address: str


class Decisions:
    """Records what a person decided; each in one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def send_again(self, delivery_id: int, *, force: bool) -> SentAgain:
        """Send the text to the same role as a new message, and withdraw this delivery.

        An uncertain one must have been looked for just now. Raises UnknownDelivery, DecisionRefused.
        """
        async with self._database.transaction("send_again") as transaction:
            row = await self._delivery(transaction, delivery_id)
            after = _allowed(row, Event.PERSON_SENT_AGAIN, "sent again")
            why_not = self._may_still_appear(row)
            if why_not and not force:
                raise DecisionRefused(delivery_id, row["state"], "sent again", why_not, may_be_forced=True)
            recipient = await transaction.one(sql("recipient_now"), {"delivery_id": delivery_id})
            assert recipient is not None
            if recipient["ended_at_ms"] is not None:
                why_not = f"{recipient['name']} has left the room, and nobody took its place"
                raise DecisionRefused(delivery_id, row["state"], "sent again", why_not)
            sent = await transaction.one(
                sql("send_again"),
                {"delivery_id": delivery_id, "role_id": recipient["role_id"], "now_ms": self._clock.now_ms()},
            )
            assert sent is not None
            await self._withdraw(
                transaction, delivery_id, after, Event.PERSON_SENT_AGAIN, f"sent again as message {sent['message_id']}"
            )
        return SentAgain(sent["message_id"], sent["delivery_id"], recipient["name"], recipient["address"])

    async def drop(self, delivery_id: int) -> State:
        """Give a delivery up; the state that it was in. Raises UnknownDelivery, DecisionRefused."""
        async with self._database.transaction("drop") as transaction:
            row = await self._delivery(transaction, delivery_id)
            after = _allowed(row, Event.PERSON_DROPPED, "dropped")
            await self._withdraw(transaction, delivery_id, after, Event.PERSON_DROPPED, "dropped by a person")
        return State(row["state"])

    async def _delivery(self, transaction: Transaction, delivery_id: int) -> Row:
        row = await transaction.one(sql("delivery_state"), {"delivery_id": delivery_id})
        if row is None:
            raise UnknownDelivery(str(delivery_id))
        return row

    def _may_still_appear(self, row: Row) -> str:
        """Why the text may be read yet without being sent again; "" if it was found nowhere for long enough."""
        state = State(row["state"])
        if state is not State.UNCERTAIN:
            return _MAY_APPEAR.get(state, "")
        if row["absent_since_ms"] is None:
            return "no look has found it absent yet"
        absent_ms = self._clock.now_ms() - row["absent_since_ms"]
        if 0 <= absent_ms < ABSENCE_GRACE_MS:
            left_s = (ABSENCE_GRACE_MS - absent_ms + 999) // 1_000
            return f"it may be on its way from the queue to the thread; ask again in {left_s} s"
        return ""

    async def _withdraw(
        self, transaction: Transaction, delivery_id: int, state: State, event: Event, detail: str
    ) -> None:
        await transaction.run(
            sql("decide"),
            {
                "delivery_id": delivery_id,
                "state": state.value,
                "event": event.value,
                "detail": detail,
                "now_ms": self._clock.now_ms(),
            },
        )


def _allowed(row: Row, event: Event, decision: str) -> State:
    """The state after the event. Raises DecisionRefused where the delivery's table has none.

    What was never handed over has no policy yet; both tables say the same of it.
    """
    state, policy = State(row["state"]), Policy(row["policy"] or Policy.QUEUE)
    after = TABLES[policy].get((state, event))
    if after is None:
        detail = f" ({row['detail']})" if row["detail"] else ""
        raise DecisionRefused(row["delivery_id"], f"{state.value}{detail}", decision, _NEVER[state])
    return after
