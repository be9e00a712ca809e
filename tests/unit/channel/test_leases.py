"""The right to be an address's waiter: who is believed, and for how long."""

import subprocess
from dataclasses import replace

import anyio
import pytest

from channel.errors import LeaseHeld, LeaseLost
from channel.leases import Lease, Leases
from channel.presence import LEASE_TTL_S, Presence
from tests.unit.world import BOOT, Channel, World, claude
from waiters import processes
from waiters.processes import ProcessIdentity


async def test_a_second_process_is_refused_while_the_first_lives(channel: Channel) -> None:
    await channel.leases.take("ann", "p1", "")

    with pytest.raises(LeaseHeld) as held:
        await channel.leases.take("ann", "p2", "")
    assert held.value.process == "p1"
    assert await channel.leases.is_held("ann")


async def test_terms_grow_with_every_taking(world: World, channel: Channel) -> None:
    first = await channel.leases.take("ann", "p1", "/bell/1")
    again = await channel.leases.take("ann", "p1", "/bell/1")
    await channel.leases.release(again)
    after_release = await channel.leases.take("ann", "p2", "/bell/2")
    world.dead.add("p2")
    after_death = await channel.leases.take("ann", "p3", "/bell/3")

    assert [lease.term for lease in (first, again, after_release, after_death)] == [1, 2, 3, 4]
    assert await channel.leases.bell("ann") == "/bell/3"
    assert (await channel.leases.take("bob", "p3", "")).term == 1


@pytest.mark.fault("F32")
async def test_a_dead_holder_is_seen_as_dead_before_its_lease_runs_out(world: World, channel: Channel) -> None:
    await channel.leases.take("ann", "p1", "")
    world.dead.add("p1")

    assert not await channel.leases.is_held("ann")
    assert (await channel.leases.take("ann", "p2", "")).term == 2


@pytest.mark.fault("F32")
async def test_a_lease_of_another_boot_is_not_believed(world: World, channel: Channel) -> None:
    await channel.leases.take("ann", "p1", "")

    async with world.process(boot="boot-2") as rebooted:
        assert not await rebooted.leases.is_held("ann")
        assert (await rebooted.leases.take("ann", "p2", "")).term == 2


@pytest.mark.fault("F32")
async def test_a_holder_in_another_pid_namespace_is_judged_by_its_lease_only(world: World, channel: Channel) -> None:
    await channel.leases.take("ann", "p1", "")
    world.unknown.add("p1")

    world.clock.advance(LEASE_TTL_S - 1)
    with pytest.raises(LeaseHeld):
        await channel.leases.take("ann", "p2", "")

    world.clock.advance(1)
    assert (await channel.leases.take("ann", "p2", "")).term == 2


@pytest.mark.fault("F32")
@pytest.mark.parametrize("change", ["a stranger under its pid", "another boot", "another PID namespace"])
async def test_a_lease_row_with_the_pid_of_a_living_process_is_judged_by_the_whole_identity(
    world: World, channel: Channel, change: str
) -> None:
    """With real processes: a child stands for the stranger that was given the pid."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:  # noqa: ASYNC220
        identity = processes.identity_of(stranger.pid)
        assert identity is not None
        holder = {
            "a stranger under its pid": replace(identity, start=identity.start - 1),
            "another boot": replace(identity, boot_id="another-host-or-boot"),
            "another PID namespace": replace(identity, pid_namespace="1"),
        }[change]
        presence = Presence(world.clock, BOOT, lambda process: processes.is_alive(ProcessIdentity.from_text(process)))
        leases = Leases(channel.database, world.clock, presence)

        await leases.take("bob", identity.to_text(), "")
        assert await leases.is_held("bob")
        await leases.take("ann", holder.to_text(), "")
        assert await leases.is_held("ann") is (change == "another PID namespace")
        stranger.kill()


@pytest.mark.fault("F34")
async def test_a_lease_that_runs_out_and_that_nobody_took_can_be_renewed(world: World, channel: Channel) -> None:
    """A process that was stopped for minutes goes on where it was."""
    lease = await channel.leases.take("ann", "p1", "")
    world.clock.advance(10 * LEASE_TTL_S)
    assert not await channel.leases.is_held("ann")

    assert await channel.leases.renew("p1", [lease]) == {lease}
    assert await channel.leases.is_held("ann")


@pytest.mark.fault("F34")
async def test_a_lease_from_the_future_is_not_believed(world: World, channel: Channel) -> None:
    await channel.leases.take("ann", "p1", "")
    async with channel.database.transaction() as transaction:
        await transaction.run("UPDATE waiters SET lease_until_ms = lease_until_ms + 1")

    assert not await channel.leases.is_held("ann")
    assert (await channel.leases.take("ann", "p2", "")).term == 2


@pytest.mark.fault("F34")
@pytest.mark.parametrize("hours", [2, -1])
async def test_a_lease_does_not_notice_that_the_wall_clock_was_set(world: World, channel: Channel, hours: int) -> None:
    await channel.leases.take("ann", "p1", "")
    world.clock.set_wall_ms(world.clock.now_ms() + hours * 3_600_000)

    assert await channel.leases.is_held("ann")
    world.clock.advance(LEASE_TTL_S)
    assert not await channel.leases.is_held("ann")


async def test_one_statement_renews_what_a_process_keeps_and_nothing_else(world: World, channel: Channel) -> None:
    kept = [await channel.leases.take(address, "p1", "") for address in ("ann", "bob")]
    forgotten = await channel.leases.take("carl", "p1", "")
    others = await channel.leases.take("dora", "p2", "")
    world.clock.advance(LEASE_TTL_S - 1)

    assert await channel.leases.renew("p1", kept) == set(kept)

    world.clock.advance(1)
    held = {address: await channel.leases.is_held(address) for address in ("ann", "bob", "carl", "dora")}
    assert held == {"ann": True, "bob": True, "carl": False, "dora": False}
    assert await channel.leases.renew("p1", [others, forgotten]) == {forgotten}


async def test_a_lease_that_another_took_is_not_among_the_renewed(world: World, channel: Channel) -> None:
    lost = await channel.leases.take("ann", "p1", "")
    kept = await channel.leases.take("bob", "p1", "")
    world.dead.add("p1")
    newer = await channel.leases.take("ann", "p2", "")

    assert await channel.leases.renew("p1", [lost, kept]) == {kept}
    with pytest.raises(LeaseLost):
        await channel.leases.check(lost)
    await channel.leases.check(newer)


async def test_a_released_lease_is_free_and_is_not_held_by_its_old_term(channel: Channel) -> None:
    lease = await channel.leases.take("ann", "p1", "/bell")
    await channel.leases.release(lease, "stopped")

    assert not await channel.leases.is_held("ann")
    assert (await channel.leases.bell("ann"), await channel.leases.detail("ann")) == ("", "stopped")
    with pytest.raises(LeaseLost):
        await channel.leases.check(lease)
    assert await channel.leases.renew("p1", [lease]) == set()


async def test_an_old_term_can_neither_release_the_new_one_nor_speak_for_it(world: World, channel: Channel) -> None:
    old = await channel.leases.take("ann", "p1", "")
    world.dead.add("p1")
    new = await channel.leases.take("ann", "p2", "/bell")
    await channel.leases.set_detail(new, "fine")

    await channel.leases.set_detail(old, "queue full")
    await channel.leases.release(old)

    assert await channel.leases.detail("ann") == "fine"
    await channel.leases.check(new)


@pytest.mark.fault("F10")
@pytest.mark.fault("F33")
async def test_of_twenty_that_take_a_lease_at_once_one_wins(world: World, channel: Channel) -> None:
    outcomes: list[Lease | LeaseHeld] = []

    async def contend(number: int) -> None:
        async with world.process() as own:
            try:
                outcomes.append(await own.leases.take("ann", f"p{number}", ""))
            except LeaseHeld as held:
                outcomes.append(held)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(contend, number)

    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Lease)]
    assert [outcome.process for outcome in outcomes] == [winner.process] * 20


@pytest.mark.parametrize(
    ("harness", "gone", "connected"),
    [
        ("claude", "harness", False),
        ("claude", "server", True),
        ("codex", "harness", True),  # it may be the shared daemon, or be gone while the server still ends
        ("codex", "server", False),
    ],
)
async def test_a_session_is_connected_as_long_as_the_process_that_stands_for_it(
    world: World, channel: Channel, harness: str, gone: str, connected: bool
) -> None:
    caller = replace(claude("ann"), harness=harness)
    world.dead.add(caller.process if gone == "harness" else caller.server)

    (view,) = (await channel.join(caller, "boss")).roles

    assert view.connected is connected
