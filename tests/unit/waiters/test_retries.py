"""Repeating a call while the database is locked: ours."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from channel.errors import StoreBusy
from fakes.clock import FakeClock
from waiters.retries import PAUSE_S_MAX, REPEATS_MAX, while_busy


def busy(times: int, calls: list[str]) -> Callable[[], Awaitable[str]]:
    """A call that finds the database locked so many times."""

    async def call() -> str:
        calls.append("call")
        if len(calls) <= times:
            raise StoreBusy
        return "done"

    return call


async def let_time_pass(clock: FakeClock) -> None:
    while True:
        await anyio.lowlevel.checkpoint()
        clock.advance(PAUSE_S_MAX)


async def test_a_call_that_succeeds_is_made_once_and_its_result_returned():
    calls: list[str] = []
    assert await while_busy(FakeClock(), lambda: busy(0, calls)()) == "done"
    assert calls == ["call"]


async def test_a_call_is_repeated_while_the_database_is_locked():
    clock = FakeClock()
    calls: list[str] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_time_pass, clock)
            assert await while_busy(clock, lambda: busy(REPEATS_MAX, calls)()) == "done"
            tasks.cancel_scope.cancel()
    assert len(calls) == 1 + REPEATS_MAX


async def test_a_database_that_stays_locked_is_reported_at_last():
    clock = FakeClock()
    calls: list[str] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_time_pass, clock)
            with pytest.raises(StoreBusy):
                await while_busy(clock, lambda: busy(99, calls)())
            tasks.cancel_scope.cancel()
    assert len(calls) == 1 + REPEATS_MAX
