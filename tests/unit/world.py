"""One channel file on a machine whose clock, ids and living processes the test decides.

`World.process()` opens the file as one more process does: a connection and services of its own, as
in the product.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from channel.clock import IdSource
from channel.database import Database, open_database
from channel.deliveries import Deliveries
from channel.delivery_states import Event, Policy
from channel.leases import Lease, Leases
from channel.membership import Caller, Joined, Membership
from channel.messages import HandOver, OpenDelivery, Outcome, PendingDelivery
from channel.presence import PERSON, Presence
from channel.sending import Sending, Sent
from fakes.clock import FakeClock, FakeIds

BOOT = "boot-1"


def claude(who: str, *, session_id: str | None = None, process: str | None = None) -> Caller:
    """A Claude Code session; `who` is its address, and its process unless that is given."""
    return Caller(who, "claude", process or f"{who}-claude", f"{who}-server", session_id=session_id)


def codex(who: str) -> Caller:
    """A Codex thread."""
    return Caller(who, "codex", f"{who}-codex", f"{who}-server", thread_id=who, codex_home="/h", codex_path="/c")


def person(who: str) -> Caller:
    """A person who ran a command; `who` is the address."""
    return Caller(who, PERSON, f"{who}-command", f"{who}-command")


@dataclass(frozen=True)
class Channel:
    """The file as one process sees it."""

    database: Database
    presence: Presence
    leases: Leases
    membership: Membership
    sending: Sending
    deliveries: Deliveries
    clock: FakeClock

    async def join(self, caller: Caller, name: str, room: str = "hall") -> Joined:
        return await self.membership.join(caller, room, name, None)

    async def send(self, sender: str, to: str | None, text: str = "hello") -> Sent:
        return await self.sending.send(sender, text, None if to is None else [to], None)

    async def pending_ids(self, address: str) -> list[int]:
        """The messages that wait for a session, in order."""
        return [each.message.message_id for each in await self.deliveries.next_pending(address)]

    async def pending(self, address: str) -> PendingDelivery:
        """The only delivery that waits for a session."""
        (only,) = await self.deliveries.next_pending(address)
        return only

    async def hand_over(self, lease: Lease, policy: Policy = Policy.QUEUE) -> int:
        """Record the hand-over of the first pending delivery of a lease's address; its id."""
        first = (await self.deliveries.next_pending(lease.address))[0]
        hand_over = HandOver(first.delivery_id, "0" * 64)
        assert await self.deliveries.record_hand_over(lease, policy, [hand_over]) == {first.delivery_id}
        return first.delivery_id

    async def record(self, delivery_id: int, event: Event, why: str = "") -> str:
        """Record one outcome; the state after it."""
        (recorded,) = await self.deliveries.record([Outcome(delivery_id, event, why)])
        return recorded.state.value

    async def open_at(self, lease: Lease, policy: Policy = Policy.QUEUE) -> list[OpenDelivery]:
        return await self.deliveries.open_at(lease, policy)

    async def row(self, delivery_id: int) -> dict[str, object]:
        """A delivery as it is stored."""
        row = await self.database.read_one("SELECT * FROM deliveries WHERE delivery_id = ?", (delivery_id,))
        assert row is not None
        return dict(row)

    async def states(self) -> dict[int, str]:
        """The state of each message's only delivery, or of its newest."""
        rows = await self.database.read("SELECT message_id, state FROM deliveries ORDER BY delivery_id")
        return {row["message_id"]: row["state"] for row in rows}

    async def history(self, delivery_id: int) -> list[tuple[str, str]]:
        """Each event of a delivery with the state after it."""
        rows = await self.database.read(
            "SELECT event, to_state FROM delivery_events WHERE delivery_id = ? ORDER BY event_id", (delivery_id,)
        )
        return [(row["event"], row["to_state"]) for row in rows]


class World:
    """`dead`: processes that are gone. `unknown`: those of another PID namespace."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "channel.db"
        self.clock = FakeClock()
        self.ids: IdSource = FakeIds()
        self.dead: set[str] = set()
        self.unknown: set[str] = set()

    def is_alive(self, process: str) -> bool | None:
        return None if process in self.unknown else process not in self.dead

    @asynccontextmanager
    async def process(self, *, boot: str = BOOT) -> AsyncIterator[Channel]:
        """One more process that has the file open."""
        async with open_database(self.path, durable=False) as database:
            presence = Presence(self.clock, boot, self.is_alive)
            leases = Leases(database, self.clock, presence)
            yield Channel(
                database,
                presence,
                leases,
                Membership(database, self.clock, self.ids, presence),
                Sending(database, self.clock, presence),
                Deliveries(database, self.clock, leases),
                self.clock,
            )
