"""Old messages that are handled go, all others stay, and the file gets shorter."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import anyio
import pytest

from channel.decisions import Decisions
from channel.delivery_states import Event, Policy
from channel.messages import Outcome
from channel.trimming import PAUSE_S, TRIMMED_AT_ONCE, Trimmed, Trimming
from tests.unit.world import Channel, World, claude, codex

DAY_S = 24 * 3_600
MONTH_MS = 30 * DAY_S * 1_000

WAYS: dict[str, tuple[Policy, tuple[Event, ...], bool]] = {
    "seen": (Policy.QUEUE, (Event.KEY_IN_ITEMS,), True),
    "withdrawn": (Policy.QUEUE, (Event.ANSWERED, Event.PERSON_DROPPED), True),
    "accepted by a session without a transcript": (Policy.MONITOR, (Event.TAKEN, Event.NO_TRANSCRIPT), True),
    "accepted": (Policy.MONITOR, (Event.TAKEN,), False),
    "accepted by a thread": (Policy.QUEUE, (Event.ANSWERED,), False),
    "uncertain": (Policy.QUEUE, (Event.ANSWER_LOST,), False),
    "conflict": (Policy.QUEUE, (Event.KEY_WITH_OTHER_TEXT,), False),
    "handed over": (Policy.QUEUE, (), False),
    "pending again": (Policy.QUEUE, (Event.NOT_WRITTEN,), False),
}


async def trim(channel: Channel, older_than_ms: int = MONTH_MS, *, only_count: bool = False) -> Trimmed:
    trimming = Trimming(channel.database, channel.clock, lambda _done: None)
    return await _while_time_passes(channel, trimming, older_than_ms, only_count)


async def _while_time_passes(channel: Channel, trimming: Trimming, older_than_ms: int, only_count: bool) -> Trimmed:
    done = Trimmed(-1, -1)

    async def run(scope: anyio.CancelScope) -> None:
        nonlocal done
        done = await (trimming.count(older_than_ms) if only_count else trimming.trim(older_than_ms))
        if not only_count:
            await trimming.give_back()
        scope.cancel()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, tasks.cancel_scope)
            while True:
                await channel.clock.until_asleep(PAUSE_S)
                channel.clock.advance(PAUSE_S)
    return done


@pytest.fixture
async def hall(channel: Channel) -> AsyncIterator[Channel]:
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    yield channel


async def handled(channel: Channel, count: int) -> None:
    """Messages to the worker that were seen."""
    lease = await channel.leases.take("thread", "p1", "")
    for _ in range(count):
        await channel.send("ann", "worker")
        await channel.record(await channel.hand_over(lease), Event.KEY_IN_ITEMS)
    await channel.leases.release(lease)


async def ids(channel: Channel) -> list[int]:
    return [row[0] for row in await channel.database.read("SELECT message_id FROM messages ORDER BY message_id")]


async def test_what_is_old_and_handled_is_removed_with_all_that_is_recorded_of_it(hall: Channel) -> None:
    await handled(hall, 3)
    hall.clock.advance(31 * DAY_S)
    await handled(hall, 2)

    assert await trim(hall, only_count=True) == Trimmed(3, 0)
    assert await ids(hall) == [1, 2, 3, 4, 5]
    assert await trim(hall) == Trimmed(3, 0)
    assert await ids(hall) == [4, 5]
    for table in ("deliveries", "delivery_events"):
        rows = await hall.database.read(f"SELECT DISTINCT delivery_id FROM {table} ORDER BY delivery_id")
        assert [row[0] for row in rows] == [4, 5]


@pytest.mark.fault("F42")
@pytest.mark.parametrize("way", WAYS)
async def test_only_what_nothing_more_can_happen_to_is_removed(hall: Channel, way: str) -> None:
    policy, events, goes = WAYS[way]
    await hall.send("ann", "worker")
    lease = await hall.leases.take("thread", "p1", "")
    delivery_id = await hall.hand_over(lease, policy)
    for event in events:
        if event is Event.PERSON_DROPPED:
            await Decisions(hall.database, hall.clock).drop(delivery_id)
        else:
            await hall.record(delivery_id, event)
    hall.clock.advance(365 * DAY_S)
    await hall.send("ann", "worker", "the newest")

    assert await trim(hall) == (Trimmed(1, 0) if goes else Trimmed(0, 1))
    assert await ids(hall) == ([2] if goes else [1, 2])


async def test_a_message_to_several_stays_as_long_as_one_has_not_got_it(hall: Channel) -> None:
    await hall.join(claude("tom"), "tester")
    await hall.send("ann", None)
    lease = await hall.leases.take("thread", "p1", "")
    await hall.record(await hall.hand_over(lease), Event.KEY_IN_ITEMS)
    hall.clock.advance(365 * DAY_S)
    await hall.send("ann", "worker", "the newest")

    assert await trim(hall) == Trimmed(0, 1)


async def test_no_id_is_ever_given_twice(hall: Channel) -> None:
    await handled(hall, 3)
    hall.clock.advance(365 * DAY_S)

    assert await trim(hall) == Trimmed(2, 0)  # the newest of all stays
    await hall.send("ann", "worker")
    rows = await hall.database.read("SELECT message_id, delivery_id FROM deliveries ORDER BY delivery_id")
    assert [tuple(row) for row in rows] == [(3, 3), (4, 4)]


async def test_an_answer_to_a_removed_message_stays(hall: Channel) -> None:
    await handled(hall, 2)
    hall.clock.advance(365 * DAY_S)
    await hall.send("ann", "worker", "an answer")
    async with hall.database.transaction() as transaction:
        await transaction.run("UPDATE messages SET reply_to = 1 WHERE message_id = 3")

    assert await trim(hall) == Trimmed(2, 0)
    assert (await hall.deliveries.message(3)).reply_to is None


async def test_the_file_gets_shorter_while_another_process_has_it_open_and_writes(hall: Channel, world: World) -> None:
    async with world.process() as other:
        await handled(other, 3)
        async with other.database.transaction() as transaction:
            await transaction.run("UPDATE messages SET text = ?", ("x" * 1_000_000,))
        await other.send("ann", "worker", "the newest")
        await hall.database.checkpoint()
        before = world.path.stat().st_size
        hall.clock.advance(365 * DAY_S)

        assert await trim(hall) == Trimmed(3, 0)

        assert before > 3_000_000
        assert world.path.stat().st_size < 500_000
        await other.send("ann", "worker", "after it")
        assert await other.pending_ids("thread") == [4, 5]
    with closing(sqlite3.connect(world.path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_evidence_of_a_removed_delivery_is_of_no_more_use_and_no_fault(hall: Channel) -> None:
    """A waiter may be looking for a withdrawn one at this moment."""
    await handled(hall, 2)
    hall.clock.advance(365 * DAY_S)
    await trim(hall)

    assert await hall.deliveries.record([Outcome(1, Event.KEY_IN_ITEMS)]) == []
    await hall.deliveries.record_silent_look([1])


async def test_a_batch_that_is_interrupted_is_whole_and_the_next_run_goes_on(hall: Channel) -> None:
    await handled(hall, TRIMMED_AT_ONCE + 2)
    hall.clock.advance(365 * DAY_S)
    told: list[Trimmed] = []
    trimming = Trimming(hall.database, hall.clock, told.append)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trimming.trim, MONTH_MS)
            await hall.clock.until_asleep(PAUSE_S)
            scope.cancel()

    assert await ids(hall) == [TRIMMED_AT_ONCE + 1, TRIMMED_AT_ONCE + 2]
    assert told == [Trimmed(TRIMMED_AT_ONCE, 0)]
    assert await trim(hall) == Trimmed(1, 0)
