"""The promises, checked after every step and at the end.

Beside those in `truth.py` (nothing added twice, no second showing without its mark, no other text):

- a delivery changes state only as its policy's table says, and only the newest term hands over;
- what waits for a role is first handed over in the order of sending;
- `accepted` is said of what the receiver has, absence of what is absent, `seen` of what the model was shown;
- in the end everything is seen, or says truly why it is not.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database
from channel.deliveries import Deliveries, Recorded
from channel.delivery_states import TABLES, Event, Policy, State
from channel.leases import Leases
from channel.messages import Outcome, key_of
from channel.presence import Presence
from tests.simulation.claude import Monitor
from tests.simulation.machine import Process
from tests.simulation.truth import Truth

_NEW_EVENTS = """
SELECT e.event_id, e.event, e.from_state, e.to_state, d.delivery_id, d.message_id, d.role_id, d.policy, d.address,
  d.term, w.term AS newest_term
FROM delivery_events e JOIN deliveries d ON d.delivery_id = e.delivery_id LEFT JOIN waiters w ON w.address = d.address
WHERE e.event_id > ? ORDER BY e.event_id
"""
_NEW_TEXTS = "SELECT message_id, text FROM messages WHERE message_id > ?"
_WAITS_LONGER = """
SELECT min(d.message_id) FROM deliveries d
WHERE d.role_id = ? AND d.message_id < ? AND d.state = 'pending' AND d.policy IS NULL
"""
_DELIVERIES = """
SELECT d.*, m.sender_role_id, r.ended_at_ms, r.ended_by, c.address AS held_at
FROM deliveries d JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
JOIN connections c ON c.connection_id = r.connection_id ORDER BY d.delivery_id
"""


class Destination(NamedTuple):
    """What an address is: a Codex thread, or a Claude session (`thread_id` is None) with or without a transcript.

    `name` is its agent's. `gone`: its process, and it comes never again.
    """

    name: str
    thread_id: str | None
    has_transcript: bool
    gone: bool


class Checker:
    """Reads the file as a person would; `destinations` says what each address is."""

    def __init__(self, path: Path, truth: Truth, destinations: dict[str, Destination]) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._truth = truth
        self._destinations = destinations
        self._last_event = 0
        self._last_message = 0
        self._moved: set[int] = set()
        self._role_of: dict[int, int] = {}
        self._channel_id = ""

    @property
    def _database(self) -> sqlite3.Connection:
        """Opened once there is a channel, which the first server makes."""
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, isolation_level=None, timeout=0)
            self._connection.row_factory = sqlite3.Row
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def check_step(self) -> None:
        """Look at what was committed since the last time."""
        if not self._truth.texts and not self._is_made():
            return
        rows = self._database.execute(_NEW_EVENTS, (self._last_event,)).fetchall()
        if not rows:
            return
        for row in self._database.execute(_NEW_TEXTS, (self._last_message,)):
            self._truth.texts[row["message_id"]] = row["text"]
            self._last_message = row["message_id"]
        handed_over = [row for row in rows if row["to_state"] == State.HANDED_OVER.value]
        for row in rows:
            self._check_transition(row)
            self._note_moves(row)
        for row in handed_over:
            self._check_hand_over(row)
        self._last_event = rows[-1]["event_id"]

    def check_outcome(self, process: Process, monitor: Monitor | None, outcome: Outcome) -> None:
        """What a receiver is about to say of a delivery is true."""
        row = self._database.execute(
            "SELECT message_id, address FROM deliveries WHERE delivery_id = ?", (outcome.delivery_id,)
        ).fetchone()
        message_id, place = row["message_id"], self._destinations[row["address"]]
        if outcome.event is Event.TAKEN:
            assert monitor is not None
            self._truth.require(
                message_id in monitor.headers_read, f"message {message_id} is called taken, and nobody read it"
            )
        if place.thread_id is None:
            return
        key, thread = self.key_of(message_id), self._truth.threads[place.thread_id]
        if outcome.event is Event.ANSWERED:
            self._truth.require(key in thread.added, f"{key} is called accepted, and was never added")
        elif outcome.event in (Event.NOT_WRITTEN, Event.REFUSED_WITHOUT_EFFECT):
            self._truth.require(key not in thread.added, f"{key} is called not added, and it was")
        elif outcome.event is Event.KEY_IN_NEITHER:
            absent = self._truth.absent_when_read.get((process.text, place.thread_id), set())
            was_there = key in thread.added and key not in absent
            self._truth.require(not was_there, f"{key} is called absent, and it was there when the items were read")

    def key_of(self, message_id: int) -> str:
        if not self._channel_id:
            self._channel_id = self._database.execute("SELECT id FROM channel").fetchone()[0]
        return key_of(self._channel_id, message_id)

    def open_ends(self) -> list[str]:
        """What is not settled yet, in words; empty when every delivery has come to its end."""
        found = []
        for row in self._database.execute(_DELIVERIES):
            state = State(row["state"])
            is_settled = self._is_settled(row, state)
            if not is_settled:
                found.append(
                    f"message {row['message_id']} at {self._name(row['address'] or row['held_at'])}: {state.value}"
                )
        return found

    def held_leases(self, presence: Presence) -> list[str]:
        """The addresses that a process serves, as somebody else sees it."""
        rows = self._database.execute("SELECT * FROM waiters").fetchall()
        return [self._name(row["address"]) for row in rows if presence.lease_is_held(row, row["process"])]

    def _name(self, address: str) -> str:
        return self._destinations[address].name

    def count_states(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state"))

    def counted(self, sql: str) -> int:
        return int(self._database.execute(sql).fetchone()[0])

    def _is_made(self) -> bool:
        return self._path.exists() and bool(self._database.execute("SELECT 1 FROM sqlite_master").fetchone())

    def _is_settled(self, row: sqlite3.Row, state: State) -> bool:
        if state is State.SEEN:
            return True
        if state is State.WITHDRAWN:
            self._truth.require(
                bool(row["detail"]), f"delivery {row['delivery_id']} is withdrawn, and nothing says why"
            )
            return True
        if state is State.PENDING:
            is_notice = row["sender_role_id"] is None  # meant for the session that lost a role, and follows no heir
            return is_notice and row["ended_at_ms"] is not None and self._destinations[row["held_at"]].gone
        place = self._destinations[row["address"]]
        if place.thread_id is not None:
            key, thread = self.key_of(row["message_id"]), self._truth.threads[place.thread_id]
            if state is State.CONFLICT:
                return key in thread.tampered
            return state is State.UNCERTAIN and not thread.holds(key)
        return state is State.ACCEPTED and not place.has_transcript

    def _check_transition(self, row: sqlite3.Row) -> None:
        if row["from_state"] is None:
            self._truth.require(row["to_state"] == State.PENDING.value, f"a delivery begins as {row['to_state']}")
            return
        policy = Policy(row["policy"]) if row["policy"] else Policy.QUEUE
        before, event, after = State(row["from_state"]), Event(row["event"]), State(row["to_state"])
        step = f"message {row['message_id']}: {before.value} -{event.value}-> {after.value}"
        self._truth.require(TABLES[policy].get((before, event)) is after, f"{step} stands in no table")
        if after is State.SEEN:
            self._truth.require(self._was_shown(row), f"{step}, and the model was not shown it")

    def _was_shown(self, row: sqlite3.Row) -> bool:
        place = self._destinations[row["address"]]
        if place.thread_id is not None:
            return self.key_of(row["message_id"]) in self._truth.threads[place.thread_id].shown
        return self._truth.was_shown(place.name, row["message_id"])

    def _note_moves(self, row: sqlite3.Row) -> None:
        if self._role_of.setdefault(row["delivery_id"], row["role_id"]) != row["role_id"]:
            self._moved.add(row["delivery_id"])

    def _check_hand_over(self, row: sqlite3.Row) -> None:
        what = f"message {row['message_id']} was handed over to {self._name(row['address'])}"
        self._truth.require(
            row["term"] == row["newest_term"], f"{what} by term {row['term']}, newest is {row['newest_term']}"
        )
        if row["delivery_id"] in self._moved:
            return
        waits = self._database.execute(_WAITS_LONGER, (row["role_id"], row["message_id"])).fetchone()[0]
        is_overtaken = waits is not None and self._came_first(waits, row["role_id"])
        self._truth.require(not is_overtaken, f"{what} before message {waits}, which was sent earlier to the same role")

    def _came_first(self, message_id: int, role_id: int) -> bool:
        """Whether a waiting message was sent to this very role, and did not come to it with a take-over."""
        (delivery_id,) = self._database.execute(
            "SELECT delivery_id FROM deliveries WHERE message_id = ? AND role_id = ?", (message_id, role_id)
        ).fetchone()
        return self._role_of.get(delivery_id) == role_id


class CheckedDeliveries(Deliveries):
    """The product's own, and what is recorded through it is compared with the truth."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        leases: Leases,
        checker: Checker,
        process: Process,
        monitor: Monitor | None = None,
    ) -> None:
        super().__init__(database, clock, leases)
        self._checker = checker
        self._process = process
        self._monitor = monitor

    async def record(self, outcomes: Sequence[Outcome]) -> list[Recorded]:
        for outcome in outcomes:
            self._checker.check_outcome(self._process, self._monitor, outcome)
        return await super().record(outcomes)
