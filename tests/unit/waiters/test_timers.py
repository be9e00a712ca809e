"""Waiting for an event for a time of the injected clock."""

import anyio

from fakes.clock import FakeClock
from waiters.timers import is_set_within

SOON = 5.0


async def test_an_event_ends_the_wait_before_its_time() -> None:
    event, clock = anyio.Event(), FakeClock()
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_once_asleep, event, clock)
            assert await is_set_within(event, clock, 10)
    assert clock.asleep() == []


async def test_the_wait_ends_when_its_time_is_over() -> None:
    event, clock = anyio.Event(), FakeClock()
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(advance_once_asleep, clock)
            assert not await is_set_within(event, clock, 10)


async def test_without_a_limit_no_timer_runs() -> None:
    event, clock = anyio.Event(), FakeClock()
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_without_timers, event, clock)
            assert await is_set_within(event, clock, None)


async def set_once_asleep(event: anyio.Event, clock: FakeClock) -> None:
    await clock.until_asleep(10)
    event.set()


async def advance_once_asleep(clock: FakeClock) -> None:
    await clock.until_asleep(10)
    clock.advance(10)


async def set_without_timers(event: anyio.Event, clock: FakeClock) -> None:
    assert clock.asleep() == []
    event.set()
