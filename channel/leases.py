"""The timed right to be the waiter of an address. No timer here: who renews, and when, is `waiters`."""

import json
from collections.abc import Collection
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Database
from channel.errors import LeaseHeld, LeaseLost
from channel.presence import Presence
from channel.queries import sql


class Lease(NamedTuple):
    """One taking of an address's lease; `term` is larger than that of any taking before."""

    address: str
    process: str
    term: int


class Leases:
    """Take, renew, release."""

    def __init__(self, database: Database, clock: Clock, presence: Presence) -> None:
        self._database = database
        self._clock = clock
        self._presence = presence

    async def take(self, address: str, process: str, bell: str) -> Lease:
        """A new term for `process`, whose FIFO is `bell`. Raises LeaseHeld if another holder may live."""
        async with self._database.transaction("take_lease") as transaction:
            row = await transaction.one(sql("waiter"), {"address": address})
            if row and row["process"] != process and self._presence.lease_is_held(row, row["process"]):
                raise LeaseHeld(row["process"])
            taken = await transaction.one(
                sql("take_lease"), {"address": address, "process": process, "bell": bell, **self._times()}
            )
            assert taken is not None
            return Lease(address, process, taken["term"])

    async def renew(self, process: str, leases: Collection[Lease]) -> set[Lease]:
        """Renew leases of a process, and no other that it failed to give back; those that it still holds.

        One that ran out and that nobody took is renewed too: a stopped process goes on where it was.
        """
        addresses = json.dumps([lease.address for lease in leases])
        rows = await self._database.write(
            sql("renew_leases"), {"process": process, "addresses": addresses, **self._times()}, "renew_leases"
        )
        return {Lease(row["address"], process, row["term"]) for row in rows}.intersection(leases)

    async def release(self, lease: Lease, detail: str = "") -> None:
        """Give the lease back; nothing happens if it is lost already."""
        async with self._database.transaction("release_lease") as transaction:
            await transaction.run(
                sql("release_lease"),
                {"address": lease.address, "term": lease.term, "detail": detail, "now_ms": self._clock.now_ms()},
            )

    async def set_detail(self, lease: Lease, detail: str) -> None:
        """Say how it goes, in the words of `waiters/status.py`; others read it in `join`."""
        async with self._database.transaction("set_detail") as transaction:
            await transaction.run(
                sql("set_waiter_detail"), {"address": lease.address, "term": lease.term, "detail": detail}
            )

    async def check(self, lease: Lease) -> None:
        """Raises LeaseLost if another term has begun or this one was released."""
        held = await self._database.read_one(
            sql("holds_lease"), {"address": lease.address, "term": lease.term, "process": lease.process}
        )
        if held is None:
            raise LeaseLost(lease.address)

    async def is_held(self, address: str) -> bool:
        """Whether a process that may live is the waiter of the address."""
        row = await self._database.read_one(sql("waiter"), {"address": address})
        return row is not None and self._presence.lease_is_held(row, row["process"])

    def is_alive(self, process: str) -> bool | None:
        """Whether a process that took a lease once still runs; None where this can't be judged."""
        return self._presence.is_alive(process)

    async def bell(self, address: str) -> str:
        """The FIFO of the newest holder, or ""."""
        row = await self._database.read_one(sql("waiter"), {"address": address})
        return row["bell"] if row else ""

    async def detail(self, address: str) -> str:
        """What the newest holder said last."""
        row = await self._database.read_one(sql("waiter"), {"address": address})
        return row["detail"] if row else ""

    def _times(self) -> dict[str, int | str]:
        return {
            "boot_id": self._presence.boot_id,
            "lease_until_ms": self._presence.lease_until_ms(),
            "now_ms": self._clock.now_ms(),
        }
