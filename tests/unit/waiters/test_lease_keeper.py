"""Renewing: every 20 s while there is something to keep, and the end of what can't be kept."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import anyio
import pytest

from channel.errors import ChannelError, LeaseLost, SchemaTooNew, StoreMoved
from channel.leases import Lease
from channel.presence import LEASE_TTL_S
from tests.unit.waiters.rig import WAIT_S, until, until_asleep
from tests.unit.world import Channel, World
from waiters.background import background_tasks
from waiters.lease_keeper import RENEW_S, LeaseKeeper


class Losses:
    """What a keeper said it could not keep."""

    def __init__(self) -> None:
        self.reasons: list[ChannelError] = []
        self.any = anyio.Event()

    def __call__(self, reason: ChannelError) -> None:
        self.reasons.append(reason)
        self.any.set()

    async def wait(self) -> ChannelError:
        with anyio.fail_after(WAIT_S):
            await self.any.wait()
        return self.reasons[0]


@asynccontextmanager
async def keeper(channel: Channel, process: str = "p1") -> AsyncIterator[LeaseKeeper]:
    made = LeaseKeeper(channel.leases, channel.clock, process)
    async with background_tasks() as tasks:
        tasks.start_soon(made.run)
        yield made


async def renewals(channel: Channel) -> int:
    """When the lease of `thread` was renewed last."""
    row = await channel.database.read_one("SELECT renewed_at_ms FROM waiters WHERE address = 'thread'")
    assert row is not None
    return int(row[0])


async def pass_a_round(channel: Channel) -> None:
    """One renewal: until the keeper sleeps again."""
    await until_asleep(channel, RENEW_S)
    channel.clock.advance(RENEW_S)
    await until_asleep(channel, RENEW_S)


async def test_what_is_kept_is_held_for_as_long_as_the_keeper_runs(channel: Channel) -> None:
    lost = Losses()
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        for _ in range(10):
            await pass_a_round(channel)
            assert await channel.leases.is_held("thread")
    assert lost.reasons == []

    channel.clock.advance(LEASE_TTL_S)
    assert not await channel.leases.is_held("thread")


def test_two_renewals_may_fail_before_anybody_else_may_take_a_lease() -> None:
    assert 3 * RENEW_S <= LEASE_TTL_S


async def test_with_nothing_to_keep_no_timer_runs(channel: Channel) -> None:
    async with keeper(channel) as running:
        await anyio.wait_all_tasks_blocked()
        assert channel.clock.asleep() == []

        lease = await channel.leases.take("thread", "p1", "")
        running.keep(lease, Losses())
        await until_asleep(channel, RENEW_S)
        running.drop(lease)
        channel.clock.advance(RENEW_S)
        await anyio.wait_all_tasks_blocked()
        assert channel.clock.asleep() == []


async def test_a_lost_lease_is_told_once_and_the_others_are_kept(world: World, channel: Channel) -> None:
    lost, kept = Losses(), Losses()
    async with keeper(channel) as running, world.process() as other:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        running.keep(await channel.leases.take("ann", "p1", ""), kept)
        world.dead.add("p1")
        await other.leases.take("thread", "p2", "")
        world.dead.clear()

        await until_asleep(channel, RENEW_S)
        channel.clock.advance(RENEW_S)
        assert isinstance(await lost.wait(), LeaseLost)
        await until_asleep(channel, RENEW_S)
        await pass_a_round(channel)

        assert len(lost.reasons) == 1
        assert kept.reasons == []
        assert await channel.leases.is_held("ann")


async def test_a_lease_that_is_taken_during_a_renewal_is_not_lost(world: World, channel: Channel) -> None:
    lost = Losses()
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        await until_asleep(channel, RENEW_S)
        with closing(sqlite3.connect(world.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            channel.clock.advance(RENEW_S)
            await anyio.wait_all_tasks_blocked()  # the renewal waits for the lock
            running.keep(Lease("later", "p1", 7), lost)
            other.execute("ROLLBACK")
        await until_asleep(channel, RENEW_S)

    assert lost.reasons == []


async def test_a_locked_database_is_tried_again_and_costs_no_lease(world: World, channel: Channel) -> None:
    lost = Losses()
    await channel.database.read("PRAGMA busy_timeout=1")
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        before = await renewals(channel)
        await until_asleep(channel, RENEW_S)
        with closing(sqlite3.connect(world.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            channel.clock.advance(RENEW_S)
            await until_asleep(channel)  # a pause before the next try
            assert channel.clock.asleep()[0] < RENEW_S
            other.execute("ROLLBACK")
        channel.clock.advance(RENEW_S)

        async def renewed() -> bool:
            return await renewals(channel) > before

        await until(renewed)
    assert lost.reasons == []


async def test_a_database_that_stays_locked_costs_no_lease_until_it_runs_out(world: World, channel: Channel) -> None:
    lost = Losses()
    await channel.database.read("PRAGMA busy_timeout=1")
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        with closing(sqlite3.connect(world.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await until_asleep(channel, RENEW_S)
            channel.clock.advance(RENEW_S)
            for _ in range(10):  # pauses of a few tries, until the keeper gives up this round
                await until_asleep(channel)
                if channel.clock.asleep() == [RENEW_S]:
                    break
                channel.clock.advance(channel.clock.asleep()[0])
                await anyio.wait_all_tasks_blocked()
            other.execute("ROLLBACK")
        await pass_a_round(channel)
        assert await channel.leases.is_held("thread")
    assert lost.reasons == []


@pytest.mark.fault("F53")
async def test_a_newer_schema_ends_every_waiter_with_the_reason(world: World, channel: Channel) -> None:
    lost = Losses()
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        running.keep(await channel.leases.take("ann", "p1", ""), lost)
        with closing(sqlite3.connect(world.path)) as newer:
            newer.execute("PRAGMA user_version=99")
        await until_asleep(channel, RENEW_S)
        channel.clock.advance(RENEW_S)

        assert isinstance(await lost.wait(), SchemaTooNew)
        assert len(lost.reasons) == 2


async def test_a_file_that_was_moved_away_ends_every_waiter_with_the_reason(world: World, channel: Channel) -> None:
    lost = Losses()
    async with keeper(channel) as running:
        running.keep(await channel.leases.take("thread", "p1", ""), lost)
        world.path.rename(world.path.with_name("away.db"))
        await until_asleep(channel, RENEW_S)
        channel.clock.advance(RENEW_S)

        assert isinstance(await lost.wait(), StoreMoved)
