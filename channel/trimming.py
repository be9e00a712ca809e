"""Old messages that are handled are taken away, and the file gets shorter; others go on writing meanwhile.

Handled: each delivery is seen, withdrawn, or accepted by a session without a transcript, of which nothing more
will ever be learnt. Everything else stays, however old. Each step is a transaction of some milliseconds.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database, Row
from channel.queries import sql

TRIMMED_AT_ONCE = 100
"""Messages a transaction: 10 ms, with the events of each."""

COUNTED_AT_ONCE = 5_000
"""Messages a read, which holds up nobody."""

PAGES_AT_ONCE = 200
"""Pages given back a transaction: 10 ms."""

PAUSE_S = 0.01
"""At least so long others have the file between two transactions."""

PAUSE_OVER_STEP = 2
"""And so many times as long as the one before took: a writer that waits asks now and then, and must find it free."""

STEPS_BETWEEN_CHECKPOINTS = 10
"""A longer log would be some other process's to copy into the file, and its call would take that long."""

CHECKPOINTS_MAX = 50
"""A reader's few milliseconds may keep the file from being cut; then again, for half a second at most."""

_STEP = "PRAGMA incremental_vacuum(1);\n"
"""Python 3.11 runs such a statement no further than its first page, whatever number it is given (measured)."""


class Trimmed(NamedTuple):
    """How many old messages were taken away (or would be), and how many are not handled and stay."""

    removed: int
    kept: int


class Trimming:
    """Takes old messages away. May be cancelled between any two steps."""

    def __init__(self, database: Database, clock: Clock, on_progress: Callable[[Trimmed], None]) -> None:
        self._database = database
        self._clock = clock
        self._on_progress = on_progress
        self._steps = 0

    async def count(self, older_than_ms: int) -> Trimmed:
        """What `trim` would do now."""

        async def read(place: Mapping[str, int]) -> list[Row]:
            return await self._database.read(sql("to_trim"), {**place, "limit": COUNTED_AT_ONCE})

        return await self._batch_by_batch(older_than_ms, read)

    async def trim(self, older_than_ms: int) -> Trimmed:
        """Take away what was sent so long ago and is handled."""

        async def remove(place: Mapping[str, int]) -> list[Row]:
            async with self._database.transaction("trim") as transaction:
                rows = await transaction.all(sql("to_trim"), {**place, "limit": TRIMMED_AT_ONCE})
                handled = [row["message_id"] for row in rows if row["is_handled"]]
                if handled:
                    await transaction.run(sql("trim"), {"message_ids": json.dumps(handled)})
            return rows

        return await self._batch_by_batch(older_than_ms, remove)

    async def give_back(self) -> None:
        """Cut off the end of the file what is used no more; a file that can't be cut stays as it is."""
        unused = await self._unused_pages()
        while unused:
            began_s = self._clock.monotonic()
            async with self._database.transaction("give_back") as transaction:
                await transaction.run(_STEP * min(unused, PAGES_AT_ONCE))
            before, unused = unused, await self._unused_pages()
            if unused >= before:
                break
            await self._pause(began_s)
        for _ in range(CHECKPOINTS_MAX):
            if await self._database.checkpoint():
                return
            await self._clock.sleep(PAUSE_S)

    async def _batch_by_batch(
        self, older_than_ms: int, step: Callable[[Mapping[str, int]], Awaitable[list[Row]]]
    ) -> Trimmed:
        """`step` takes where it goes on, and returns what it went through: nothing at the end."""
        place = {"before_ms": self._clock.now_ms() - older_than_ms, "after_ms": -1, "after_id": -1}
        removed = kept = 0
        began_s = self._clock.monotonic()
        while rows := await step(place):
            handled = sum(row["is_handled"] for row in rows)
            removed, kept = removed + handled, kept + len(rows) - handled
            self._on_progress(Trimmed(removed, kept))
            place |= {"after_ms": rows[-1]["created_at_ms"], "after_id": rows[-1]["message_id"]}
            await self._pause(began_s)
            began_s = self._clock.monotonic()
        return Trimmed(removed, kept)

    async def _pause(self, step_began_s: float) -> None:
        """Leave the file to others for a while."""
        self._steps += 1
        if self._steps % STEPS_BETWEEN_CHECKPOINTS == 0:
            await self._database.checkpoint()
        await self._clock.sleep(max(PAUSE_S, PAUSE_OVER_STEP * (self._clock.monotonic() - step_began_s)))

    async def _unused_pages(self) -> int:
        [row] = await self._database.read(sql("unused_pages"))
        return int(row[0])
