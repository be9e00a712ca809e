"""Runs a person's command until it is done, or until a signal stops it between two steps."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus

from harness_adapters.commands.progress import progress_line
from harness_adapters.composition import Channel, open_channel
from waiters.background import background_tasks

Result = TypeVar("Result")

_STOPS = (signal.SIGINT, signal.SIGTERM)


class _Stopped(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


def run(command: Callable[..., Awaitable[Result]], *arguments: object) -> Result:
    """What `command` returns. A transaction that has begun is finished before a signal stops it.

    Raises KeyboardInterrupt (Ctrl-C), SystemExit (SIGTERM; with 128 + its number), and what the command raises.
    """
    try:
        return anyio.run(_until_stopped, command, arguments)
    except _Stopped as stopped:
        if stopped.number == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + stopped.number) from None


@asynccontextmanager
async def open_for_people(database: Path, *, durable: bool) -> AsyncIterator[Channel]:
    """The channel, which must be there; an upgrade of its file is seen on a terminal. Raises StoreUnavailable."""
    with progress_line() as show:
        async with open_channel(
            database,
            durable=durable,
            create=False,
            on_upgrade=lambda step: show(f"upgrading {database}: {step} …"),
        ) as channel:
            show("")
            yield channel


async def _until_stopped(command: Callable[..., Awaitable[Result]], arguments: tuple[object, ...]) -> Result:
    stopped_by = 0

    async def stop_at_signal(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        nonlocal stopped_by
        with anyio.open_signal_receiver(*_STOPS) as signals:
            task_status.started()
            async for number in signals:
                stopped_by = number
                scope.cancel()

    async with background_tasks() as tasks:
        with anyio.CancelScope() as scope:
            await tasks.start(stop_at_signal, scope)
            return await command(*arguments)
    raise _Stopped(stopped_by)
