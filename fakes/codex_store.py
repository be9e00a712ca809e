"""What the Codex processes of one CODEX_HOME share: threads, queued rows, turns, items, writer locks.

The real Codex keeps rows in `queue_1.sqlite`, items in rollouts and `thread_history_1.sqlite`; the fake keeps
both in one SQLite file of its own, `$CODEX_HOME/fake/state.sqlite`. What it shares with the real ones, and
what tests rely on: a row that was committed survives kill -9 of any process, and rows and items are two
places that are not changed together.

It stores and counts; who may consume a row, and when, is in `fakes/codex_thread.py`. A test that only needs
threads to exist uses both:

    home = CodexHome(tmp_path / ".codex")
    thread_id = new_thread(home)              # idle, on disk, loaded nowhere
    home.add_row(thread_id, text_input("hi"), "key-1")
    home.rows(thread_id), home.items(thread_id)
"""

import fcntl
import json
import os
import secrets
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from channel.clock import Clock, SystemClock
from fakes.signals import Signals

QUEUE_ROWS_MAX = 100  # measured: the 101st add of a thread is refused
LOCK_WAIT_S = 10.0  # other fakes hold the write lock for a few milliseconds

Input = list[dict[str, Any]]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    id TEXT PRIMARY KEY, history_mode TEXT NOT NULL, source TEXT NOT NULL, parent_id TEXT,
    cwd TEXT NOT NULL, on_disk INTEGER NOT NULL, archived INTEGER NOT NULL DEFAULT 0,
    paused INTEGER NOT NULL DEFAULT 0, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS queued_rows (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, thread_id TEXT NOT NULL,
    input TEXT NOT NULL, client_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    ordinal INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, thread_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('inProgress', 'completed', 'interrupted', 'failed')),
    started_at_ms INTEGER NOT NULL, completed_at_ms INTEGER);
CREATE TABLE IF NOT EXISTS items (
    ordinal INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, turn_id TEXT NOT NULL,
    body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    place TEXT PRIMARY KEY, times INTEGER NOT NULL);
"""


@dataclass(frozen=True)
class Thread:
    """`history_mode` is paginated or legacy; `source` is vscode (an app-server client), cli or exec."""

    id: str
    history_mode: str
    source: str
    parent_id: str | None
    cwd: str
    on_disk: bool
    archived: bool
    paused: bool
    created_at_ms: int
    updated_at_ms: int


@dataclass(frozen=True)
class Row:
    """One queued submission. `client_id` is the caller's clientUserMessageId: an echo, never a key."""

    id: str
    input: Input
    client_id: str


@dataclass(frozen=True)
class Turn:
    """`completed_at_ms` is None while `status` is inProgress."""

    ordinal: int
    id: str
    thread_id: str
    status: str
    started_at_ms: int
    completed_at_ms: int | None


@dataclass(frozen=True)
class Item:
    """One recorded item; `body` is what the wire carries under "item"."""

    ordinal: int
    turn_id: str
    body: dict[str, Any]


class QueueIsFull(Exception):
    """The thread has QUEUE_ROWS_MAX rows; nothing was added."""


def text_input(*texts: str) -> Input:
    """The wire's input for these texts, each a part of its own."""
    return [{"type": "text", "text": text, "text_elements": []} for text in texts]


class CodexHome:
    """The shared state of the fakes in the CODEX_HOME `path`, which must exist."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self.clock = clock or SystemClock()
        folder = path / "fake"
        folder.mkdir(exist_ok=True)
        self.signals = Signals(folder / "signals")
        self.faults_path = folder / "faults"
        self._received_path = folder / "received.jsonl"
        self._locks = path / "thread-writer-locks"
        self._locks.mkdir(exist_ok=True)
        self._db = sqlite3.connect(
            folder / "state.sqlite",
            timeout=LOCK_WAIT_S,
            isolation_level=None,
            check_same_thread=False,  # one that is forgotten in a cycle is closed by whichever thread collects it
        )
        self._end = weakref.finalize(self, self._db.close)  # Python 3.13 warns of one that is merely forgotten
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA synchronous = OFF")  # kill -9 is survived, power loss need not be
        with self._transaction():
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)

    def close(self) -> None:
        self._end()

    # --- threads ---

    def create_thread(
        self,
        *,
        history_mode: str = "paginated",
        source: str = "vscode",
        parent_id: str | None = None,
        cwd: str | None = None,
    ) -> Thread:
        """A thread without a turn, so not on disk yet: other processes don't know it."""
        now = self.clock.now_ms()
        thread_id = new_uuid(now)
        self._write(
            "INSERT INTO threads (id, history_mode, source, parent_id, cwd, on_disk, created_at_ms,"
            " updated_at_ms) VALUES (?, ?, ?, ?, ?, 0, ?, ?)",
            (thread_id, history_mode, source, parent_id, cwd or str(self.path.parent), now, now),
        )
        return self.thread(thread_id)

    def find_thread(self, thread_id: str) -> Thread | None:
        rows = self._read("SELECT * FROM threads WHERE id = ?", (thread_id,))
        if not rows:
            return None
        fields = dict(rows[0])
        flags = {name: bool(fields[name]) for name in ("on_disk", "archived", "paused")}
        return Thread(**{**fields, **flags})

    def thread(self, thread_id: str) -> Thread:
        """Raises KeyError for an id that `create_thread` never gave."""
        found = self.find_thread(thread_id)
        if found is None:
            raise KeyError(thread_id)
        return found

    def set_archived(self, thread_id: str, archived: bool) -> None:
        self._write("UPDATE threads SET archived = ? WHERE id = ?", (archived, thread_id))

    def set_paused(self, thread_id: str, paused: bool) -> None:
        self._write("UPDATE threads SET paused = ? WHERE id = ?", (paused, thread_id))

    def delete_thread(self, thread_id: str) -> None:
        """Forget the thread with its rows, turns and items."""
        with self._transaction():
            for table in ("queued_rows", "turns", "items"):
                self._db.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608
            self._db.execute("DELETE FROM threads WHERE id = ?", (thread_id,))

    def lock_writer(self, thread_id: str) -> int:
        """Take the thread's writer lock; the file descriptor holds it until closed, or until death.

        Raises BlockingIOError where another process, or another owner in this one, has it.
        """
        fd = os.open(self._locks / f"{thread_id}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        return fd

    # --- the queue ---

    def add_row(self, thread_id: str, input_: Input, client_id: str) -> Row:
        """Append a row, whatever rows and items there are with this `client_id`. Raises QueueIsFull."""
        row = Row(new_uuid(self.clock.now_ms()), input_, client_id)
        with self._transaction():
            if len(self.rows(thread_id)) >= QUEUE_ROWS_MAX:
                raise QueueIsFull(thread_id)
            self._db.execute(
                "INSERT INTO queued_rows (id, thread_id, input, client_id) VALUES (?, ?, ?, ?)",
                (row.id, thread_id, json.dumps(input_), client_id),
            )
        return row

    def rows(self, thread_id: str) -> list[Row]:
        """All rows, oldest first."""
        found = self._read("SELECT * FROM queued_rows WHERE thread_id = ? ORDER BY position", (thread_id,))
        return [Row(row["id"], json.loads(row["input"]), row["client_id"]) for row in found]

    def update_row(self, row_id: str, input_: Input) -> None:
        self._write("UPDATE queued_rows SET input = ? WHERE id = ?", (json.dumps(input_), row_id))

    def delete_row(self, thread_id: str, row_id: str) -> bool:
        """Whether there was such a row."""
        return self._write("DELETE FROM queued_rows WHERE thread_id = ? AND id = ?", (thread_id, row_id)) == 1

    # --- turns and items ---

    def start_turn(self, thread_id: str, *, row_id: str | None = None) -> Turn:
        """A new turn, and in the same transaction the row it consumes leaves the queue."""
        now = self.clock.now_ms()
        turn_id = new_uuid(now)
        with self._transaction():
            if row_id is not None:
                self._db.execute("DELETE FROM queued_rows WHERE id = ?", (row_id,))
            self._db.execute(
                "INSERT INTO turns (id, thread_id, status, started_at_ms) VALUES (?, ?, 'inProgress', ?)",
                (turn_id, thread_id, now),
            )
            self._db.execute("UPDATE threads SET on_disk = 1, updated_at_ms = ? WHERE id = ?", (now, thread_id))
        return self.turns(thread_id)[-1]

    def end_turn(self, turn: Turn, status: str) -> Turn:
        """The turn as it ended; `status` is completed, interrupted or failed."""
        now = self.clock.now_ms()
        self._write("UPDATE turns SET status = ?, completed_at_ms = ? WHERE id = ?", (status, now, turn.id))
        self._write("UPDATE threads SET updated_at_ms = ? WHERE id = ?", (now, turn.thread_id))
        return next(ended for ended in self.turns(turn.thread_id) if ended.id == turn.id)

    def turns(self, thread_id: str) -> list[Turn]:
        """All turns, oldest first."""
        found = self._read("SELECT * FROM turns WHERE thread_id = ? ORDER BY ordinal", (thread_id,))
        return [Turn(**dict(row)) for row in found]

    def add_item(self, turn: Turn, body: dict[str, Any]) -> None:
        self._write(
            "INSERT INTO items (thread_id, turn_id, body) VALUES (?, ?, ?)",
            (turn.thread_id, turn.id, json.dumps(body)),
        )

    def items(self, thread_id: str) -> list[Item]:
        """All items, oldest first."""
        found = self._read("SELECT * FROM items WHERE thread_id = ? ORDER BY ordinal", (thread_id,))
        return [Item(row["ordinal"], row["turn_id"], json.loads(row["body"])) for row in found]

    # --- for tests: what was asked, and how often a place was passed ---

    def note_received(self, entry: dict[str, Any]) -> None:
        """Append to `fake/received.jsonl`; one write, so that kill -9 leaves no half line."""
        line = json.dumps(entry).encode() + b"\n"
        fd = os.open(self._received_path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)

    def received(self) -> list[dict[str, Any]]:
        """Every message that any fake server of this home was sent: pid, method, threadId, key."""
        if not self._received_path.exists():
            return []
        return [json.loads(line) for line in self._received_path.read_text().splitlines()]

    def count_passage(self, place: str) -> int:
        """How often `place` was passed in this home, by any process, this time included."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO passages VALUES (?, 1) ON CONFLICT (place) DO UPDATE SET times = times + 1",
                (place,),
            )
            return int(self._read("SELECT times FROM passages WHERE place = ?", (place,))[0]["times"])

    def passages(self) -> dict[str, int]:
        """How often each place was passed since `set_faults`, of those at which a fault was set."""
        return {row["place"]: row["times"] for row in self._read("SELECT * FROM passages", ())}

    def forget_passages(self) -> None:
        self._write("DELETE FROM passages", ())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _write(self, sql: str, values: tuple[object, ...]) -> int:
        with self._transaction():
            return self._db.execute(sql, values).rowcount

    def _read(self, sql: str, values: tuple[object, ...]) -> list[sqlite3.Row]:
        return self._db.execute(sql, values).fetchall()


def new_uuid(now_ms: int) -> str:
    """A UUID of version 7, as all of Codex's ids are: 48 bits of time, then random ones."""
    random_bits = secrets.randbits(74)
    high = (now_ms << 16) | 0x7000 | (random_bits >> 62)
    low = (0b10 << 62) | (random_bits & ((1 << 62) - 1))
    return str(uuid.UUID(int=(high << 64) | low))
