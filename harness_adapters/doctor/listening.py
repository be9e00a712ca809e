"""How the doctor hears: the command that `join` returns, run as a harness without Monitor runs it."""

import shlex
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteReceiveStream

from harness_adapters.claude.framing import decode, whole_deliveries
from waiters.background import background_tasks

END_S_MAX = 2.0
"""A streamer ends within 0.8 s of SIGTERM."""

Hear = Callable[[int, str, str], Awaitable[None]]
"""Called with a message's id, its sender and its text; again where more of the text has come."""


@asynccontextmanager
async def listening(command: str, hear: Hear) -> AsyncIterator[None]:
    """Run the streamer while the body runs."""
    process = await anyio.open_process(
        [*shlex.split(command), "--pace", "off"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None,
        start_new_session=True,  # a Ctrl-C is for the doctor, which ends it after it has left
    )
    assert process.stdout is not None
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(_hear_all, process.stdout, hear)
            yield
    finally:
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with anyio.move_on_after(END_S_MAX):
                await process.wait()
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()


async def _hear_all(stdout: ByteReceiveStream, hear: Hear) -> None:
    written = b""
    async for chunk in stdout:
        written += chunk
        lines = written.rpartition(b"\n")[0].decode().split("\n")
        for whole in whole_deliveries(lines):
            with suppress(ValueError):  # shortened: nobody was asked for so much
                header, text = decode(whole.lines)
                await hear(header.message_id, header.sender, text)
