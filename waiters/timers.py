"""Waiting for an event, but not longer than a time of the injected clock."""

import anyio

from channel.clock import Clock


async def is_set_within(event: anyio.Event, clock: Clock, seconds: float | None) -> bool:
    """Wait for `event`, at most `seconds` (None: without a limit); whether it was set."""
    if seconds is None:
        await event.wait()
        return True
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_after, clock, seconds, group.cancel_scope)
        await event.wait()
        group.cancel_scope.cancel()
    return event.is_set()


async def _cancel_after(clock: Clock, seconds: float, scope: anyio.CancelScope) -> None:
    await clock.sleep(seconds)
    scope.cancel()
