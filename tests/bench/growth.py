"""`python -m tests.bench.growth`: what a million handled messages cost, and what it takes to be rid of them.

Each call is timed in a file with none and in one with all of them. What is asked of the second: that it is no
slower than the first by more than a machine's unrest.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio

from channel.clock import SystemClock
from channel.conversation import Conversation
from channel.delivery_states import Event, Policy
from channel.inspection import Inspection
from channel.leases import Lease
from channel.membership import Caller
from channel.messages import HandOver, Outcome
from channel.trimming import Trimming
from harness_adapters.composition import Channel, open_channel
from tests import campaigns
from tests.bench.figures import Figure, Limit, series, table
from waiters.processes import own_identity

MESSAGES = 1_000_000
TIMES = 200
FILLED_AT_ONCE = 50_000
YEAR_MS = 365 * 24 * 3_600_000
TEXT_CHARACTERS = 200

OVER_NONE_MAX = 1.5
UNREST_MS = 0.3
"""A call takes half a millisecond: what the machine does beside it may double that."""

PAUSED_MS_MAX = 500.0
"""The longest that a send may wait for a trim; SQLite's own patience is ten times that."""

Call = Callable[[], Awaitable[object]]

_FILL = """
INSERT INTO messages (room_id, sender_role_id, sender, text, created_at_ms)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
SELECT 1, 1, 'sender', printf('%.*c', :characters, 'x'), :began_ms + i FROM n;
INSERT INTO deliveries (message_id, role_id, changed_at_ms)
SELECT message_id, 2, created_at_ms FROM messages WHERE message_id > :after_id;
UPDATE deliveries SET state = 'handed_over', last_event = 'hand_over_recorded', policy = 'monitor', address = 'reader',
  place = '{"transcript": "/home/me/.claude/projects/-/0.jsonl", "offset": 0}',
  text_sha256 = printf('%064d', message_id), term = 1, handed_over_at_ms = changed_at_ms WHERE message_id > :after_id;
UPDATE deliveries SET state = 'accepted', last_event = 'taken', accepted_at_ms = changed_at_ms
WHERE message_id > :after_id;
UPDATE deliveries SET state = 'seen', last_event = 'in_transcript', seen_at_ms = changed_at_ms
WHERE message_id > :after_id;
"""


def fill(database: Path, count: int) -> None:
    """Handled messages, sent a year ago by role 1 to role 2: the rows that the product would have written."""
    began_ms = SystemClock().now_ms() - YEAR_MS
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous=OFF")
        for done in range(0, count, FILLED_AT_ONCE):
            parameters = {
                "count": min(FILLED_AT_ONCE, count - done),
                "characters": TEXT_CHARACTERS,
                "began_ms": began_ms + done,
                "after_id": file.execute("SELECT coalesce(max(message_id), 0) FROM messages").fetchone()[0],
            }
            file.execute("BEGIN")
            for statement in _FILL.split(";\n"):
                file.execute(statement, parameters)
            file.execute("COMMIT")
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@asynccontextmanager
async def opened(database: Path) -> AsyncGenerator[Channel]:
    """The channel with a sender and a reader in it."""
    process = own_identity().to_text()
    async with open_channel(database, durable=False) as channel:
        for name in ("sender", "reader"):
            await channel.membership.join(Caller(name, "claude", process, process), "bench", name, None)
        yield channel


async def timed(*channels: Channel) -> list[dict[str, list[float]]]:
    """Of each channel the milliseconds of each call, TIMES over: in turn, so that what else runs hits all alike."""
    leases = [await channel.leases.take("reader", channel.process.to_text(), "") for channel in channels]
    calls = [_calls(channel, lease) for channel, lease in zip(channels, leases, strict=True)]
    found: list[dict[str, list[float]]] = [{name: [] for name in each} for each in calls]
    for _ in range(TIMES):
        for name in calls[0]:
            for each, times in zip(calls, found, strict=True):
                began = time.perf_counter()
                await each[name]()
                times[name].append((time.perf_counter() - began) * 1_000)
    for channel, lease in zip(channels, leases, strict=True):
        await channel.leases.release(lease)
    return found


def _calls(channel: Channel, lease: Lease) -> dict[str, Call]:
    inspection, conversation = Inspection(channel.database, channel.clock), Conversation(channel.database)
    process = own_identity().to_text()
    reader = Caller("reader", "claude", process, process)
    return {
        "send": lambda: channel.sending.send("sender", "hello", ["reader"], None),
        "deliver, from pending to seen": lambda: _deliver(channel, lease),
        "what is open and due": lambda: _look(channel, lease),
        "join again": lambda: channel.membership.join(reader, "bench", "reader", None),
        "list the newest": lambda: inspection.find(50),
        "list what is older than a day": lambda: inspection.find(50, older_than_ms=24 * 3_600_000),
        "show one": lambda: inspection.show(1),
        "the newest that was said": lambda: conversation.page("bench", 50, 2_000),
        "what was said since an hour": lambda: _said_since(channel, conversation),
        "the rooms": lambda: conversation.rooms(50),
        "the roles": channel.membership.seats,
    }


async def _deliver(channel: Channel, lease: Lease) -> None:
    [pending] = await channel.deliveries.next_pending("reader")
    await channel.deliveries.record_hand_over(lease, Policy.MONITOR, [HandOver(pending.delivery_id, "0" * 64)])
    await channel.deliveries.record([Outcome(pending.delivery_id, Event.TAKEN)])
    await channel.deliveries.record([Outcome(pending.delivery_id, Event.IN_TRANSCRIPT)])


async def _said_since(channel: Channel, conversation: Conversation) -> None:
    after_id = await conversation.last_before(channel.clock.now_ms() - 3_600_000)
    await conversation.after("bench", after_id, 50, 2_000)


async def _look(channel: Channel, lease: Lease) -> None:
    await channel.deliveries.open_at(lease, Policy.MONITOR)
    await channel.deliveries.next_look_at_ms("reader")
    await channel.deliveries.troubled("reader")
    await channel.deliveries.unserved_addresses()


async def measure_trim(channel: Channel, database: Path, messages: int) -> list[Figure]:
    """Remove them all, while another process sends."""
    sends: list[float] = []
    size = database.stat().st_size
    began = time.perf_counter()
    async with opened(database) as other, anyio.create_task_group() as tasks:
        tasks.start_soon(_send_on, other, sends)
        trimming = Trimming(channel.database, channel.clock, lambda _done: None)
        done = await trimming.trim(YEAR_MS // 2)
        seconds = time.perf_counter() - began
        await trimming.give_back()
        given_back_s = time.perf_counter() - began - seconds
        tasks.cancel_scope.cancel()
    assert done.removed == messages, done
    return [
        Figure("trim: messages a second", messages / seconds, "/s"),
        Figure("trim: the file given back", given_back_s, "s"),
        series("a send meanwhile", sends, "ms"),
        Figure("the longest send meanwhile", max(sends), "ms", limit=Limit("at most", PAUSED_MS_MAX)),
        Figure("file before", size / 1e6, "MB"),
        Figure(
            "file after", database.stat().st_size / 1e6, "MB", limit=Limit("at most", max(1.0, size / 1e6 / 50), "1/50")
        ),
    ]


async def _send_on(other: Channel, sends: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await other.sending.send("sender", "hello", ["reader"], None)
        sends.append((time.perf_counter() - began) * 1_000)
        await anyio.sleep(0.02)


async def measure(folder: Path, messages: int) -> list[Figure]:
    database = folder / "all" / "channel.db"
    async with opened(database):
        pass
    print(f"making {messages:,} handled messages ...", file=sys.stderr, flush=True)
    fill(database, messages)
    print("timing the calls, then a trim ...", file=sys.stderr, flush=True)
    per_message = database.stat().st_size / messages
    async with opened(folder / "none" / "channel.db") as empty, opened(database) as channel:
        with_none, with_all = await timed(empty, channel)
        figures = [Figure(f"a handled message of {TEXT_CHARACTERS} characters", per_message, "bytes")]
        for name, values in with_all.items():
            none = statistics.median(with_none[name])
            limit = Limit("at most", OVER_NONE_MAX * none + UNREST_MS, f"with none {none:.3g}")
            figures.append(series(name, values, "ms", limit))
        return figures + await measure_trim(channel, database, messages)


def main() -> int:
    """Measure and print a table; 1 if a limit is not held."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="(default: a million)")
    parser.add_argument("--folder", type=Path, help="where the files are made, half a kilobyte a message")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="growth-", dir=options.folder) as folder:
        figures = campaigns.run(measure, Path(folder), options.messages)
    print(table([(f"{options.messages:,} handled", figure) for figure in figures]))
    return int(any(figure.holds is False for figure in figures))


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
