"""What waits for a role that left is withdrawn, and its senders are told by a notice of the channel itself; what a
session was given already is given again only as a repeat, or not at all.
"""

from collections.abc import Sequence

from channel.database import Transaction
from channel.delivery_states import Event, Policy, State, next_state
from channel.names import SYSTEM_NAME
from channel.queries import sql


async def withdraw_pending(transaction: Transaction, room_id: int, role_id: int, name: str, now_ms: int) -> int:
    """Withdraw what waits for a role that left, and tell each sender that still holds a role; how many it was."""
    rows = await transaction.all(
        sql("withdraw_pending"),
        {
            "role_id": role_id,
            # What waits has no policy yet; both tables say the same of it.
            "state": next_state(Policy.QUEUE, State.PENDING, Event.RECIPIENT_LEFT).value,
            "event": Event.RECIPIENT_LEFT.value,
            "detail": f"{name} left the room",
            "now_ms": now_ms,
        },
    )
    by_sender: dict[int, list[int]] = {}
    for row in rows:
        if row["sender_role_id"] is not None:
            by_sender.setdefault(row["sender_role_id"], []).append(row["message_id"])
    for sender_role_id, message_ids in by_sender.items():
        if await transaction.one(sql("is_held"), {"role_id": sender_role_id}):
            await notify(transaction, room_id, sender_role_id, _not_delivered(name, sorted(message_ids)), now_ms)
    return len(rows)


async def settle_given_before(transaction: Transaction, role_id: int, now_ms: int) -> None:
    """What follows to a role whose session was given its own copy of it, a message to all, as another role before.

    Claude Code is shown it as a repeat. A Codex thread knows a message by its key, and no key is added twice.
    """
    await transaction.run(
        sql("settle_given_before"),
        {
            "role_id": role_id,
            "state": next_state(Policy.QUEUE, State.PENDING, Event.RECIPIENT_LEFT).value,
            "event": Event.RECIPIENT_LEFT.value,
            "detail": "the thread that took this role over was given the same message before, as another role",
            "now_ms": now_ms,
        },
    )


async def notify(transaction: Transaction, room_id: int, role_id: int, text: str, now_ms: int) -> None:
    """A message of the channel itself to one registration, delivered as any other."""
    await transaction.run(
        sql("add_message"),
        {
            "room_id": room_id,
            "sender_role_id": None,
            "sender": SYSTEM_NAME,
            "text": text,
            "role_ids": f"[{role_id}]",
            "now_ms": now_ms,
        },
    )


def _not_delivered(name: str, message_ids: Sequence[int]) -> str:
    listed = ", ".join(str(message_id) for message_id in message_ids)
    return f"{name} left the room before it was given your message{'s' if len(message_ids) > 1 else ''} {listed}."
