"""A delivery's way from pending to settled, as its waiter and its look-ups record it."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database, Row, Transaction
from channel.delivery_states import (
    BROKEN_OFF,
    MAY_BE_LATE,
    REPEATS,
    TABLES,
    Event,
    Policy,
    State,
    next_state,
)
from channel.errors import UnknownMessage
from channel.leases import Lease, Leases
from channel.look_schedule import look_after_s
from channel.messages import ID_MAX, HandOver, Message, OpenDelivery, Outcome, PendingDelivery
from channel.queries import sql
from channel.withdrawals import settle_given_before, withdraw_pending

ABSENCE_GRACE_MS = 30_000
"""A key that is in neither place may be on its way from one to the other: a 6 s hook was measured
with Codex 0.171.0. After this long it is called uncertain."""

AFTER_WITHDRAWAL = "after withdrawal"
"""The detail of a delivery that was seen although a person had withdrawn it."""

WITHDRAWN_LOOKED_FOR = 100
"""As many rows as a thread's queue can hold; the newest."""

PENDING_LOOK_S = 10
"""How soon it is looked again whether the waiter of a thread with waiting messages still lives; most threads
are given theirs within milliseconds."""

PENDING_AT_ONCE = 20
"""How many waiting deliveries are read at a time; a text may have a million characters."""


class Recorded(NamedTuple):
    """A delivery after an outcome: its state, and whether that is new."""

    delivery_id: int
    state: State
    changed: bool


class Deliveries:
    """Reads what waits, and records what happens to it."""

    def __init__(self, database: Database, clock: Clock, leases: Leases) -> None:
        self._database = database
        self._clock = clock
        self._leases = leases

    async def next_pending(self, address: str) -> list[PendingDelivery]:
        """What waits for the roles of a session, oldest message first, at most PENDING_AT_ONCE."""
        rows = await self._database.read(sql("next_pending"), {"address": address, "limit": PENDING_AT_ONCE})
        return [_pending_delivery(row) for row in rows]

    async def record_hand_over(self, lease: Lease, policy: Policy, hand_overs: Sequence[HandOver]) -> set[int]:
        """Commit the decision to give deliveries to the lease's address; the ids for which it holds.

        One that is pending no longer, or whose role went to another session, is left out.
        Raises LeaseLost: only the newest term may hand over.
        """
        rows = await self._database.write(
            sql("record_hand_over"),
            {
                "hand_overs": json.dumps([hand_over._asdict() for hand_over in hand_overs]),
                "state": next_state(policy, State.PENDING, Event.HAND_OVER_RECORDED).value,
                "event": Event.HAND_OVER_RECORDED.value,
                "policy": policy.value,
                "address": lease.address,
                "term": lease.term,
                "process": lease.process,
                "now_ms": self._clock.now_ms(),
            },
            "hand_over",
        )
        recorded = {row["delivery_id"] for row in rows}
        if len(recorded) < len(hand_overs):
            await self._leases.check(lease)
        return recorded

    async def record(self, outcomes: Sequence[Outcome]) -> list[Recorded]:
        """Record what receivers said; taken from any term, since evidence does not go stale.

        What reaches a delivery that has moved on says nothing new (MAY_BE_LATE), and is no transition; nor is what
        was said of an earlier hand-over than its newest.
        One that was trimmed meanwhile is left out.
        Raises IllegalTransition for any other event that the policy's table does not hold.
        """
        if not outcomes:
            return []
        async with self._database.transaction("record") as transaction:
            recorded = [await self._record_one(transaction, outcome) for outcome in outcomes]
        return [each for each in recorded if each is not None]

    async def record_silent_look(self, delivery_ids: Sequence[int]) -> None:
        """A look said nothing of these deliveries: they are looked for again, later."""
        if not delivery_ids:
            return
        async with self._database.transaction("record_silent_look") as transaction:
            for delivery_id in delivery_ids:
                row = await transaction.one(sql("delivery_state"), {"delivery_id": delivery_id})
                if row is None:
                    continue  # trimmed meanwhile
                looks = row["looks"] + 1
                await transaction.run(
                    sql("record_silent_look"),
                    {
                        "delivery_id": delivery_id,
                        "looks": looks,
                        "next_look_at_ms": self._after_s(look_after_s(State(row["state"]), looks)),
                    },
                )

    async def settle_broken_off(self, lease: Lease) -> list[Recorded]:
        """Record the end of hand-overs that nobody works on any more: their waiter or their session is gone.

        For the holder of the lease, between two hand-overs.
        """
        outcomes = []
        for row in await self._database.read(sql("broken_off"), {"address": lease.address}):
            if row["term"] < lease.term:
                event, why = Event.WAITER_DIED, "the process that handed it over is gone"
            elif row["term"] == lease.term:
                event, why = BROKEN_OFF[Policy(row["policy"])], "the way to the harness closed without an answer"
            else:
                continue  # this lease is lost, and the new holder is at it
            outcomes.append(Outcome(row["delivery_id"], event, why, term=row["term"]))
        return await self.record(outcomes)

    async def open_at(self, lease: Lease, policy: Policy) -> list[OpenDelivery]:
        """What was handed over at an address and is not settled, oldest message first.

        Also what other addresses were given for a role that this one holds now (a Claude session resumed in a
        new process, a role taken over), or as an earlier process of the same session, unless a waiter serves them
        still.
        """
        rows = await self._database.read(sql("open_at_address"), {"address": lease.address, "policy": policy.value})
        return await self._open_here(rows, lease)

    async def open_and_pending(self, lease: Lease, policy: Policy) -> tuple[list[OpenDelivery], list[PendingDelivery]]:
        """`open_at` and `next_pending` in one go, for a waiter that was woken: time counts then."""
        rows = await self._database.read(
            f"{sql('open_at_address')}\n{sql('next_pending')}",
            {"address": lease.address, "policy": policy.value, "limit": PENDING_AT_ONCE},
        )
        # No column of `open_at_address` is called so.
        pending = [row for row in rows if "recipient" in row.keys()]  # noqa: SIM118 (a row is no mapping)
        opened = await self._open_here(rows[: len(rows) - len(pending)], lease)
        return opened, [_pending_delivery(row) for row in pending]

    async def _open_here(self, rows: Sequence[Row], lease: Lease) -> list[OpenDelivery]:
        others = {row["address"] for row in rows} - {lease.address}
        served = {address for address in others if await self._leases.is_held(address)}
        return [_open_delivery(row, lease) for row in rows if row["address"] not in served]

    async def withdrawn_at(self, address: str) -> list[OpenDelivery]:
        """What a person withdrew after it was handed over to a thread: worth a glance while others are looked for."""
        rows = await self._database.read(
            sql("withdrawn_at_address"), {"address": address, "limit": WITHDRAWN_LOOKED_FOR}
        )
        return [
            OpenDelivery(
                delivery_id=row["delivery_id"],
                message_id=row["message_id"],
                state=State.WITHDRAWN,
                text_sha256=row["text_sha256"],
                place=row["place"],
                handed_over_at_ms=row["handed_over_at_ms"],
                elsewhere=False,
                of_former_term=False,
                role_is_replaced=False,
                next_look_at_ms=None,
            )
            for row in rows
        ]

    async def next_look_at_ms(self, address: str) -> int | None:
        """The wall-clock time of the next look-up that an address's deliveries want; None: none is open."""
        row = await self._database.read_one(sql("next_look"), {"address": address})
        return row[0] if row else None

    async def note_waiting(self, address: str, why: str) -> None:
        """Write at each pending delivery of an address what it waits for."""
        async with self._database.transaction("note_waiting") as transaction:
            await transaction.run(sql("note_waiting"), {"address": address, "detail": why})

    async def troubled(self, address: str) -> dict[State, list[int]]:
        """The message ids at an address that are uncertain or in conflict."""
        found: dict[State, list[int]] = {}
        for row in await self._database.read(sql("troubled"), {"address": address}):
            found.setdefault(State(row["state"]), []).append(row["message_id"])
        return found

    async def unserved_addresses(self) -> tuple[list[str], float | None]:
        """Codex threads without a waiter that have work now, and seconds until another may be such a one.

        Any server of the account may take them, also one whose waiter dies before its work is done.
        None: nothing more is open.
        """
        due: list[str] = []
        again_s: list[float] = []
        now_ms = self._clock.now_ms()
        for row in await self._database.read(sql("addresses_with_work")):
            look_at_ms = row["next_look_at_ms"]
            has_work = row["has_pending"] or look_at_ms is None or look_at_ms <= now_ms
            if has_work and not await self._leases.is_held(row["address"]):
                due.append(row["address"])
                continue
            if row["has_pending"]:
                again_s.append(PENDING_LOOK_S)
            if look_at_ms is not None:
                again_s.append(max(0, look_at_ms - now_ms) / 1_000)
        return due, min(again_s, default=None)

    async def message(self, message_id: int) -> Message:
        """One message whole. Raises UnknownMessage."""
        row = None
        if message_id <= ID_MAX:
            row = await self._database.read_one(sql("message"), {"message_id": message_id})
        if row is None:
            raise UnknownMessage(message_id)
        return _message(row)

    async def _record_one(self, transaction: Transaction, outcome: Outcome) -> Recorded | None:
        """None for a delivery that was trimmed meanwhile."""
        row = await transaction.one(sql("delivery_state"), {"delivery_id": outcome.delivery_id})
        if row is None:
            return None
        now_ms = self._clock.now_ms()
        policy, before, event = Policy(row["policy"]), State(row["state"]), outcome.event
        absent_since_ms = None
        if event is Event.KEY_IN_NEITHER and before in (State.ACCEPTED, State.UNCERTAIN):
            absent_since_ms = min(row["absent_since_ms"] or now_ms, now_ms)  # the clock may have been set back
            if before is State.ACCEPTED and now_ms - absent_since_ms >= ABSENCE_GRACE_MS:
                event = Event.ABSENCE_GRACE_OVER
        is_of_another = outcome.term is not None and outcome.term != row["term"]
        if is_of_another or (event in MAY_BE_LATE and (before, event) not in TABLES[policy]):
            return Recorded(outcome.delivery_id, before, changed=False)
        after = next_state(policy, before, event)
        changed = after is not before
        why = AFTER_WITHDRAWAL if before is State.WITHDRAWN else outcome.why
        looks = 0 if changed else row["looks"] + 1
        next_look_s = None if event is Event.NO_TRANSCRIPT else look_after_s(after, looks)
        if next_look_s is not None and absent_since_ms is not None and after is State.ACCEPTED:
            next_look_s = min(next_look_s, ABSENCE_GRACE_MS // 1_000)
        await transaction.run(
            sql("record_outcome"),
            {
                "delivery_id": outcome.delivery_id,
                "state": after.value,
                "event": event.value,
                "detail": why if changed or why else row["detail"],
                "now_ms": now_ms,
                "repeats": row["repeats"] + ((before, event) in REPEATS),
                "reference": outcome.reference,
                "looks": looks,
                "next_look_at_ms": self._after_s(next_look_s),
                "absent_since_ms": absent_since_ms,
            },
        )
        if after is State.PENDING:
            after = await self._keep_or_withdraw(transaction, outcome.delivery_id)
        return Recorded(outcome.delivery_id, after, changed)

    async def _keep_or_withdraw(self, transaction: Transaction, delivery_id: int) -> State:
        """A delivery waits again. If its role was taken over meanwhile it follows; if it was left, it is withdrawn."""
        owed = await transaction.one(sql("owed_to"), {"delivery_id": delivery_id})
        if owed is None:
            return State.PENDING
        await transaction.run(sql("follow_role"), {"delivery_id": delivery_id, "role_id": owed["role_id"]})
        if owed["ended_at_ms"] is None:
            await settle_given_before(transaction, owed["role_id"], self._clock.now_ms())
            row = await transaction.one(sql("delivery_state"), {"delivery_id": delivery_id})
            assert row is not None
            return State(row["state"])
        await withdraw_pending(transaction, owed["room_id"], owed["role_id"], owed["name"], self._clock.now_ms())
        return State.WITHDRAWN

    def _after_s(self, seconds: int | None) -> int | None:
        """The wall-clock time of a look that is to come after `seconds`."""
        return None if seconds is None else self._clock.now_ms() + seconds * 1_000


def _pending_delivery(row: Row) -> PendingDelivery:
    return PendingDelivery(row["delivery_id"], _message(row), row["recipient"], row["repeats"])


def _open_delivery(row: Row, lease: Lease) -> OpenDelivery:
    """As the holder of `lease` sees it."""
    return OpenDelivery(
        delivery_id=row["delivery_id"],
        message_id=row["message_id"],
        state=State(row["state"]),
        text_sha256=row["text_sha256"],
        place=row["place"],
        handed_over_at_ms=row["handed_over_at_ms"],
        elsewhere=row["address"] != lease.address,
        of_former_term=row["address"] != lease.address or row["term"] < lease.term,
        role_is_replaced=row["ended_by"] == "taken_over",
        next_look_at_ms=row["next_look_at_ms"],
    )


def _message(row: Row) -> Message:
    return Message(row["message_id"], row["room"], row["sender"], row["text"], row["reply_to"], row["created_at_ms"])
