"""Bells, and the slow look that makes good a bell that was missed."""

import os
from pathlib import Path

import anyio
import pytest

from channel.wakeups import POLL_S, bells_folder, open_bell, remove_dead_bells, ring, wait_for_change
from fakes.clock import FakeIds
from tests.unit.world import Channel, World, claude

WAIT_S = 5


async def test_a_bell_that_is_rung_wakes_who_waits(tmp_path: Path) -> None:
    async with open_bell(tmp_path, "p1", FakeIds()) as bell:
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bell.wait)
                await anyio.wait_all_tasks_blocked()
                ring([str(bell.path)])


async def test_a_bell_that_was_rung_before_anyone_waited_is_heard_once(tmp_path: Path) -> None:
    async with open_bell(tmp_path, "p1", FakeIds()) as bell:
        for _ in range(100):
            ring([str(bell.path)])
        with anyio.fail_after(WAIT_S):
            await bell.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bell.wait)
            await anyio.wait_all_tasks_blocked()
            assert not os.get_blocking(bell._descriptor)
            tasks.cancel_scope.cancel()


async def test_a_bell_rung_until_it_is_full_still_rings(tmp_path: Path) -> None:
    async with open_bell(tmp_path, "p1", FakeIds()) as bell:
        ring([str(bell.path)] * 70_000)  # a pipe holds 65,536 bytes
        with anyio.fail_after(WAIT_S):
            await bell.wait()


async def test_ringing_what_is_gone_empty_or_deaf_is_no_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "deaf")

    ring(["", str(tmp_path / "gone"), str(tmp_path / "deaf"), str(tmp_path)])


async def test_a_bell_is_removed_at_its_end(tmp_path: Path) -> None:
    folder = bells_folder(tmp_path / "channel.db")
    async with open_bell(folder, "p1", FakeIds()) as bell:
        assert bell.path.is_fifo()
    assert list(folder.iterdir()) == []


@pytest.mark.fault("F24")
async def test_only_the_bells_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """A process dies before its lease is taken, or after it was given back: no row names its bell then."""
    of_the_dead = [tmp_path / "p0.1", tmp_path / "p0.2"]
    of_others = [tmp_path / "elsewhere.1", tmp_path / "no process"]
    for path in (*of_the_dead, *of_others):
        os.mkfifo(path)
    alive = {"p0": False, "p1": True}
    async with open_bell(tmp_path, "p1", FakeIds()) as living:
        remove_dead_bells(tmp_path, alive.get)

        assert set(tmp_path.iterdir()) == {*of_others, living.path}
        ring([str(living.path)])
        with anyio.fail_after(WAIT_S):
            await living.wait()


@pytest.mark.fault("F7")
async def test_a_bell_that_was_missed_is_made_good_by_the_next_look(world: World, channel: Channel) -> None:
    seen = await channel.database.data_version()
    woken = anyio.Event()

    async def wait() -> None:
        assert await wait_for_change(channel.database, world.clock, seen) != seen
        woken.set()

    async with world.process() as other:
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await world.clock.until_asleep(POLL_S)
                world.clock.advance(POLL_S)
                await world.clock.until_asleep(POLL_S)  # nothing had changed
                assert not woken.is_set()

                await other.join(claude("ann"), "boss")
                world.clock.advance(POLL_S)
                await woken.wait()


async def test_a_commit_between_two_waits_is_not_missed(world: World, channel: Channel) -> None:
    seen = await channel.database.data_version()
    async with world.process() as other:
        await other.join(claude("ann"), "boss")

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_change, channel.database, world.clock, seen)
                await world.clock.until_asleep(POLL_S)
                world.clock.advance(POLL_S)
