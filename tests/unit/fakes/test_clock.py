"""The clock that tests move by hand."""

import anyio
import pytest

from channel.clock import Clock, IdSource
from fakes.clock import FakeClock, FakeIds

WAIT_S = 5


async def test_it_stands_still_and_both_readings_move_together():
    clock: Clock = FakeClock()
    wall_ms, monotonic_s = clock.now_ms(), clock.monotonic()
    assert (clock.now_ms(), clock.monotonic()) == (wall_ms, monotonic_s)

    clock.advance(1.5)

    assert (clock.now_ms(), clock.monotonic()) == (wall_ms + 1_500, monotonic_s + 1.5)


async def test_sleepers_wake_in_the_order_of_their_times():
    clock, woken = FakeClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            for seconds in (3, 1, 2, 9):
                tasks.start_soon(sleep, seconds)
            await clock.until_asleep(1, 2, 3, 9)
            clock.advance(5)
            await anyio.wait_all_tasks_blocked()
            assert woken == [1, 2, 3]
            assert clock.asleep() == [4]
            clock.advance(4)
    assert woken == [1, 2, 3, 9]


async def test_setting_the_wall_clock_wakes_nobody_and_leaves_the_monotonic_one():
    clock = FakeClock()
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.sleep, 10)
            await clock.until_asleep(10)
            monotonic_s = clock.monotonic()

            clock.set_wall_ms(clock.now_ms() + 3_600_000)
            await anyio.wait_all_tasks_blocked()
            assert (clock.asleep(), clock.monotonic()) == ([10], monotonic_s)

            clock.set_wall_ms(5)
            clock.advance(10)
            assert clock.now_ms() == 10_005


async def test_a_sleeper_that_is_cancelled_leaves_no_timer():
    clock = FakeClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 10)
        tasks.start_soon(clock.sleep, 20)
        await clock.until_asleep(10, 20)
        tasks.cancel_scope.cancel()
    assert clock.asleep() == []
    clock.advance(30)


async def test_sleeping_for_no_time_returns_at_once():
    with anyio.fail_after(WAIT_S):
        await FakeClock().sleep(0)
        await FakeClock().sleep(-1)


async def test_thirds_of_a_second_add_up():
    clock = FakeClock()
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.sleep, 1)
            await clock.until_asleep()
            for _ in range(3):
                clock.advance(1 / 3)


def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="set_wall_ms"):
        FakeClock().advance(-1)


def test_ids_look_like_the_real_ones_and_are_the_same_each_time():
    ids: IdSource = FakeIds()
    assert [ids.new_id(), ids.new_id()] == ["0000000000000001", "0000000000000002"]
    assert FakeIds(first=255).new_id() == "00000000000000ff"
