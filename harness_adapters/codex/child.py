"""A `codex app-server` of our own, spoken to over its stdio.

It loads no thread and runs no turn, so it needs no login and makes no connection (`--disable plugins` stops
the one look-up it would make); it reads and writes the files of its CODEX_HOME. Another process that owns the
thread notices an add within about 10 s.

The child ends on the end of its stdin (measured: within 30 ms). The write end of that pipe is only ours (no
other child inherits it), so the kernel ends the child after us even if we die by SIGKILL.
"""

import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from channel.fault_places import Place, written_at_once
from harness_adapters.codex.transport import (
    LINE_BYTES_MAX,
    NothingSent,
    TransportClosed,
    TransportUnavailable,
)
from waiters.background import background_tasks

EOF_GRACE_S = 1.0
"""Time to end after the end of stdin; a real one takes 30 ms. With the next two below the 2 s that a server
has for its own end."""
TERM_GRACE_S = 0.5
"""Time to end after SIGTERM; a real one takes 16 ms."""
KILL_GRACE_S = 0.3
"""Time until a killed child is gone; longer only where the kernel itself is stuck."""
LAST_WORDS_S = 0.5
"""Time for the exit status and the rest of stderr to arrive once stdout has ended."""
STDERR_TAIL_BYTES = 4096
"""Kept of stderr, to tell why the child ended; it writes errors in the best of times."""
LAST_WORDS_CHARACTERS = 300
"""Shown of the last line of stderr."""

SQLITE_HOME = "CODEX_SQLITE_HOME"
"""Moves Codex's databases, the queue among them, out of CODEX_HOME (measured with 0.171.0)."""

_ANSI_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@asynccontextmanager
async def open_child(
    codex: Path,
    codex_home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    sqlite_home: Path | None = None,
) -> AsyncIterator["ChildTransport"]:
    """Start `codex app-server` and end it, within 2 s, when the body ends.

    It gets `environment` (ours, if None), with CODEX_HOME set if `codex_home` is given, and its own process
    group, so that a Ctrl-C meant for the harness does not reach it.

    Raises:
        TransportUnavailable: it could not be started.
    """
    child_environment = dict(os.environ if environment is None else environment)
    if codex_home is not None:
        child_environment["CODEX_HOME"] = str(codex_home)
    # Whatever our own environment says: in another folder the child would find, and fill, another queue.
    child_environment.pop(SQLITE_HOME, None)
    if sqlite_home is not None:
        child_environment[SQLITE_HOME] = str(sqlite_home)
    async with background_tasks() as tasks:
        transport = await _start(codex, child_environment)
        tasks.start_soon(transport.drain_stderr)
        try:
            yield transport
        finally:
            await transport.aclose()


async def _start(codex: Path, environment: dict[str, str]) -> "ChildTransport":
    stdin_read, stdin_write = os.pipe()  # close-on-exec, both
    try:
        process = await anyio.open_process(
            [str(codex), "app-server", "--disable", "plugins"],
            stdin=stdin_read,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",  # no project's configuration, and no folder kept in use
            start_new_session=True,
        )
    except BaseException as error:
        os.close(stdin_write)
        if isinstance(error, (OSError, ValueError)):
            raise TransportUnavailable(
                f"{codex} can't be started: {getattr(error, 'strerror', None) or error}"
            ) from error
        raise
    finally:
        os.close(stdin_read)
    os.set_blocking(stdin_write, False)
    return ChildTransport(process, stdin_write)


class ChildTransport:
    """The lines of one child. stdin is written as a bare descriptor, to know how many bytes went out."""

    def __init__(self, process: Process, stdin: int) -> None:
        self._process = process
        self._stdin: int | None = stdin
        self._stdout = BufferedByteReceiveStream(_required(process.stdout))
        self._stdout_lock = anyio.Lock()
        self._stderr = _required(process.stderr)
        self._stderr_tail = b""
        self._stderr_ended = anyio.Event()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, line: str) -> None:
        whole = unwritten = memoryview(line.encode() + b"\n")
        while unwritten:
            try:
                if self._stdin is None:
                    raise BrokenPipeError("its stdin is closed")
                await anyio.wait_writable(self._stdin)
                unwritten = unwritten[os.write(self._stdin, written_at_once(Place.IN_REQUEST, unwritten)) :]
            except BlockingIOError:
                continue
            except (OSError, anyio.ClosedResourceError) as error:
                why = await self._why_it_ended()
                raise (NothingSent(why) if len(unwritten) == len(whole) else TransportClosed(why)) from error

    async def receive(self) -> str:
        async with self._stdout_lock:
            try:
                line = await self._stdout.receive_until(b"\n", LINE_BYTES_MAX)
            except anyio.DelimiterNotFound as error:
                raise TransportClosed(f"the codex app-server sent a line of over {LINE_BYTES_MAX} bytes") from error
            except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
                raise TransportClosed(await self._why_it_ended()) from error
        return line.decode(errors="replace")

    async def drain_stderr(self) -> None:
        """Read stderr to its end, as a child whose stderr nobody reads comes to a halt."""
        try:
            async for chunk in self._stderr:
                self._stderr_tail = (self._stderr_tail + chunk)[-STDERR_TAIL_BYTES:]
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self._stderr_ended.set()

    async def aclose(self) -> None:
        """End of stdin, SIGTERM, SIGKILL, each with its time; the signals go to the child's whole group."""
        with anyio.CancelScope(shield=True):
            self._close_stdin()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._discard_stdout)
                if not await self._ends_within(EOF_GRACE_S):
                    self._signal_group(signal.SIGTERM)
                    if not await self._ends_within(TERM_GRACE_S):
                        self._signal_group(signal.SIGKILL)
                        await self._ends_within(KILL_GRACE_S)
                tasks.cancel_scope.cancel()
            with anyio.move_on_after(KILL_GRACE_S):
                await self._process.aclose()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            descriptor, self._stdin = self._stdin, None
            anyio.notify_closing(descriptor)
            os.close(descriptor)

    async def _discard_stdout(self) -> None:
        """A child that blocks on a full stdout can't end. While the peer still reads, it does this."""
        async with self._stdout_lock:
            try:
                async for _ in self._stdout:
                    pass
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass

    async def _ends_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended (macOS says EPERM for a group of zombies)

    async def _why_it_ended(self) -> str:
        with anyio.move_on_after(LAST_WORDS_S):
            await self._stderr_ended.wait()
            await self._process.wait()
        status = self._process.returncode
        if status is None:
            how = "reads or writes no more"
        elif status < 0:
            how = f"was ended by signal {-status}"
        else:
            how = f"ended with exit status {status}"
        lines = _ANSI_SEQUENCE.sub("", self._stderr_tail.decode(errors="replace")).split("\n")
        last_words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"the codex app-server {how}" + (f": {last_words[:LAST_WORDS_CHARACTERS]}" if last_words else "")


def _required(stream: ByteReceiveStream | None) -> ByteReceiveStream:
    if stream is None:
        raise RuntimeError("the child was started without this pipe")
    return stream
