"""Prints a channel's file as SQL: every table filled, a delivery in every state of each policy.

    python -m tests.schema_file > tests/data/schemas/schema-N.sql

Run once for each schema, with the program that has it, so that later programs upgrade what an earlier one wrote.
"""

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import anyio

from channel.delivery_states import Event, Policy
from channel.leases import Lease
from tests.unit.world import Channel, World, claude, codex, person

QUEUE_WAYS: tuple[tuple[Event, ...], ...] = (
    (),
    (Event.ANSWERED,),
    (Event.ANSWERED, Event.KEY_IN_ITEMS),
    (Event.ANSWER_LOST,),
    (Event.ANSWERED, Event.KEY_WITH_OTHER_TEXT),
    (Event.ANSWERED, Event.PERSON_DROPPED),
    (Event.REFUSED_WITHOUT_EFFECT,),
)
MONITOR_WAYS: tuple[tuple[Event, ...], ...] = (
    (),
    (Event.TAKEN,),
    (Event.TAKEN, Event.IN_TRANSCRIPT),
    (Event.TAKEN, Event.NOT_IN_TRANSCRIPT),
)
"""What met a delivery after its hand-over."""

THREAD, CLAUDE = "thread", "carl"


async def _give(channel: Channel, lease: Lease, policy: Policy, ways: tuple[tuple[Event, ...], ...], to: str) -> None:
    for number, events in enumerate(ways):
        await channel.send("ann", to, f"{to} {number}\n  as it was sent: é 漢 \u202e")
        delivery = await channel.hand_over(lease, policy)
        for event in events:
            channel.clock.advance(1)
            await channel.record(delivery, event, "why")


async def _fill(world: World) -> None:
    async with world.process() as channel:
        await channel.membership.join(claude("ann", session_id="session"), "hall", "boss", "be brief")
        await channel.join(codex(THREAD), "worker")
        await channel.join(claude(CLAUDE), "reader")
        await channel.join(claude("dora"), "guest")
        await channel.membership.rename("dora", "visitor", None)
        thread = await channel.leases.take(THREAD, "p1", "/bells/1")
        await channel.leases.set_detail(thread, "queue full: 100 messages wait in the thread")
        monitor = await channel.leases.take(CLAUDE, "p2", "/bells/2")
        await _give(channel, thread, Policy.QUEUE, QUEUE_WAYS, "worker")
        await _give(channel, monitor, Policy.MONITOR, MONITOR_WAYS, "reader")
        await channel.send("ann", None, "to all")
        await channel.join(claude("eve"), "visitor")
        await channel.join(person("kim"), "kim")
        await channel.leases.release(monitor)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        anyio.run(_fill, world)
        with closing(sqlite3.connect(world.path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            sys.stdout.writelines(f"{statement}\n" for statement in connection.iterdump())
            print(f"PRAGMA user_version={version};")


if __name__ == "__main__":
    main()
