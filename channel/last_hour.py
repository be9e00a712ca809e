"""How long deliveries took, and how many waited, minute by minute over the last hour. It only reads.

However many messages an hour has, no more of the newest are read than the bounds here say; the answer tells if
that was not all.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database, Row
from channel.queries import sql

MINUTES = 60
MINUTE_MS = 60_000

MESSAGES_READ_MAX = 5_000
EVENTS_READ_MAX = 50_000
"""Both are read in about 10 ms."""

WAITING_COUNTED_MAX = 10_000


class Took(NamedTuple):
    """Milliseconds from `send`: the middle one of a minute's deliveries, and the longest."""

    median_ms: int
    longest_ms: int


class Minute(NamedTuple):
    """What was sent in one minute. `accepted`, `seen`: until the receiver had it, until its model could read it.

    None where no delivery has come so far. `waiting`: how many deliveries waited, in all rooms, at its end.
    """

    begins_at_ms: int
    deliveries: int
    accepted: Took | None
    seen: Took | None
    waiting: int


class LastHour(NamedTuple):
    """The minutes, oldest first; the last is not over. `is_whole`: else more happened than was read."""

    minutes: tuple[Minute, ...]
    is_whole: bool


async def last_hour(database: Database, clock: Clock) -> LastHour:
    """The last MINUTES minutes."""
    newest = clock.now_ms() // MINUTE_MS
    first = newest - MINUTES + 1
    since_ms = first * MINUTE_MS
    sent: dict[int, list[Row]] = {}
    message_ids = set()
    for row in await database.read(sql("times_since"), {"since_ms": since_ms, "limit": MESSAGES_READ_MAX}):
        sent.setdefault(row["created_at_ms"] // MINUTE_MS, []).append(row)
        message_ids.add(row["message_id"])
    more, events_are_all = await _more_waiting(database, since_ms)
    waiting = (await database.read(sql("count_waiting"), {"limit": WAITING_COUNTED_MAX}))[0][0]
    minutes = []
    for number in range(newest, first - 1, -1):
        of_minute = sent.get(number, [])
        minutes.append(
            Minute(
                begins_at_ms=number * MINUTE_MS,
                deliveries=len(of_minute),
                accepted=_took([row["accepted_after_ms"] for row in of_minute]),
                seen=_took([row["seen_after_ms"] for row in of_minute]),
                waiting=max(0, waiting),
            )
        )
        waiting -= more.get(number, 0)
    return LastHour(tuple(reversed(minutes)), len(message_ids) < MESSAGES_READ_MAX and events_are_all)


async def _more_waiting(database: Database, since_ms: int) -> tuple[dict[int, int], bool]:
    """By how many the waiting ones grew in each minute; and whether all events of the time were read."""
    rows = await database.read(
        sql("waiting_by_minute"), {"since_ms": since_ms, "limit": EVENTS_READ_MAX, "minute_ms": MINUTE_MS}
    )
    before = await database.read_one(sql("last_event_not_read"), {"limit": EVENTS_READ_MAX})
    return {row["minute"]: row["more"] for row in rows}, before is None or before["at_ms"] < since_ms


def _took(times_ms: Sequence[int | None]) -> Took | None:
    known = [max(0, time_ms) for time_ms in times_ms if time_ms is not None]
    return Took(round(median(known)), max(known)) if known else None
