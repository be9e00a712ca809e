"""Learning of rows that other processes wrote: a FIFO as a bell, and a slow look at `data_version`.

A bell is a hint. It is rung after COMMIT, its errors are ignored, and whoever hears it reads the store;
a bell that was missed is made good by the slow look.

A process killed by SIGKILL leaves its bell in the folder: its name tells whose it was, and whoever makes one
of its own removes those of the dead.
"""

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from channel.clock import Clock, IdSource
from channel.database import Database
from channel.place import os_errors
from channel.presence import Liveness

_PIPE_BYTES = 65_536
"""All that a FIFO holds by default; what is left in a larger one wakes once more."""

POLL_S = 30
"""How often a waiter with nothing to do asks whether the file changed."""


class Bell:
    """A FIFO that another process can ring. Made by `open_bell`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    async def wait(self) -> None:
        """Return once it has been rung since the last time."""
        await anyio.wait_readable(self._descriptor)
        with suppress(BlockingIOError):
            os.read(self._descriptor, _PIPE_BYTES)

    def remove(self) -> None:
        """Take it away: nobody listens any more."""
        self.path.unlink(missing_ok=True)


@asynccontextmanager
async def open_bell(folder: Path, process: str, ids: IdSource) -> AsyncIterator[Bell]:
    """A bell of `process`, this one, removed at the end. The folder is made 0700, the FIFO 0600.

    Raises StoreUnavailable where none can be made.
    """
    path = folder / f"{process}.{ids.new_id()}"
    with os_errors(folder):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        os.mkfifo(path, 0o600)
    try:
        # Opened for writing too, so that the reader's end never sees an end of file between two rings.
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield Bell(path, descriptor)
        finally:
            os.close(descriptor)
    finally:
        path.unlink(missing_ok=True)


def bells_folder(database: Path) -> Path:
    """Where the bells of a database's waiters are: beside it."""
    return database.with_name(f"{database.name}-bells")


def ring(bells: Iterable[str | None]) -> None:
    """Ring each that there is.

    A bell that nobody holds (ENXIO, ENOENT) or that rings already (EAGAIN) is as good as rung.
    """
    for bell in bells:
        if not bell:
            continue
        with suppress(OSError):
            descriptor = os.open(bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"!")
            finally:
                os.close(descriptor)


def remove_dead_bells(folder: Path, is_alive: Liveness) -> None:
    """Remove the bells of processes that have surely ended, whether a row still names them or not."""
    for path in folder.iterdir():
        process, _, _ = path.name.rpartition(".")
        if is_alive(process) is False:
            path.unlink(missing_ok=True)


async def wait_for_change(database: Database, clock: Clock, seen: int, look_s: float = POLL_S) -> int:
    """Return the new `data_version` once it is no longer `seen`; looks every `look_s`.

    The caller hands the result to the next call, so that a commit between two calls is not missed.
    Raises StoreUnavailable.
    """
    while True:
        await clock.sleep(look_s)
        found = await database.data_version()
        if found != seen:
            return found
