"""The streamer: a process whose stdout a Monitor turns into events.

It sleeps until its bell rings, its reader dies or a signal comes, and never imports mcp or pydantic. What
somebody has to act on goes out as one line on stdout, since Monitor shows nothing of stderr.
"""

import os
import shlex
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from channel.clock import Clock, SystemClock
from channel.errors import LeaseHeld, LeaseLost, StoreBusy, StoreFull, StoreReadOnly, StoreUnavailable
from channel.place import default_database
from harness_adapters.claude.addresses import claude_address, keyed_address
from harness_adapters.claude.pacing import PaceLimits, Pacing
from harness_adapters.claude.pipe import OutputPipe, ReaderGone
from harness_adapters.claude.receiver import MonitorReceiver
from harness_adapters.claude.session import config_folder, session_of_streamer, transcript_of
from harness_adapters.composition import open_channel
from waiters.background import background_tasks
from waiters.receiver import ReceiverEnded
from waiters.retries import BackOff
from waiters.supervisor import Supervisor

STOP_S_MAX = 0.8
"""Monitor kills 1.5 s after SIGTERM; the flush that is being written is finished before."""


async def stream(
    database: Path,
    session_key: str | None,
    limits: PaceLimits,
    clock: Clock | None = None,
    restartable: bool = False,
) -> int:
    """Serve this process's session until its reader is gone or a signal comes; the exit status.

    `clock`: the system's, if None. `restartable`: an earlier streamer may have written to the same reader.
    """
    clock = clock or SystemClock()
    pipe, pacing = OutputPipe(sys.stdout.fileno(), clock, inherited=restartable), Pacing(limits)
    if restartable:
        pacing.emptied(clock.monotonic())
    try:
        await _serve(pipe, database, session_key, pacing, clock)
    except LeaseHeld:
        await _say(pipe, "another streamer serves this session already, so this one ends. Nothing is lost.")
    except LeaseLost:
        await _say(pipe, "another streamer serves this session now, so this one ends. Nothing is lost.")
    except _NoSession as error:
        await _say(pipe, str(error))
        return 2
    except StoreUnavailable as error:
        await _say(pipe, f"{error} The messages wait; run the same command again after that.")
        return 1
    except (ReaderGone, ReceiverEnded):
        pass
    except Exception as error:
        await _say(pipe, f"it failed ({_innermost(error)!r}). The messages wait; run the same command again.")
        raise
    return 0


def _innermost(error: BaseException) -> BaseException:
    """What happened, without the groups that task groups put around it."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return error


class _NoSession(Exception):
    pass


async def _serve(pipe: OutputPipe, database: Path, session_key: str | None, pacing: Pacing, clock: Clock) -> None:
    """Serve, and begin anew after what passes by itself: a monitor that a plugin armed is started by nobody again."""
    address, transcript = _session(session_key)
    receiver = MonitorReceiver(pipe, pacing, clock, transcript, _full_text_command(database))
    back_off, said = BackOff(), ""
    while True:
        try:
            await _hold(pipe, database, address, receiver, clock)
            return
        except (StoreBusy, StoreFull, StoreReadOnly) as error:
            if str(error) != said:
                said = str(error)
                await _say(pipe, f"{said} The messages wait; this streamer goes on by itself once it can.")
            await _rest(pipe, clock, back_off.after_failure_s())


async def _hold(pipe: OutputPipe, database: Path, address: str, receiver: MonitorReceiver, clock: Clock) -> None:
    async with open_channel(database, durable=False, clock=clock) as channel, background_tasks() as tasks:
        with anyio.CancelScope() as serving:
            tasks.start_soon(_end_at_signal, channel.supervisor, serving)
            tasks.start_soon(_end_with_reader, pipe, serving)
            await channel.supervisor.hold(address, receiver)


async def _rest(pipe: OutputPipe, clock: Clock, seconds: float) -> None:
    """Raises ReaderGone if there is nobody left to go on for."""
    async with background_tasks() as tasks:
        with anyio.CancelScope() as resting:
            tasks.start_soon(_end_with_reader, pipe, resting)
            await clock.sleep(seconds)
    if resting.cancelled_caught:
        raise ReaderGone("the reader of the pipe is gone")


def _session(session_key: str | None) -> tuple[str, Callable[[], Path | None]]:
    """The address that this streamer serves, and what tells its session's transcript."""
    if session_key is not None:
        return keyed_address(session_key), lambda: None
    config = config_folder(os.environ)
    session = session_of_streamer(os.getpid(), config, os.environ)
    if session is None:
        raise _NoSession("no session is above this process. Run exactly the command that join returned.")
    return claude_address(session.process), partial(transcript_of, session.process, config)


async def _end_at_signal(supervisor: Supervisor, serving: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            await supervisor.stop(STOP_S_MAX)
            serving.cancel()


async def _end_with_reader(pipe: OutputPipe, serving: anyio.CancelScope) -> None:
    await pipe.wait_dead()
    serving.cancel()


def _full_text_command(database: Path) -> Callable[[int], str]:
    words = [sys.executable, "-I", "-m", "harness_adapters.cli"]
    if database != default_database():
        words += ["--db", str(database)]
    return lambda message_id: shlex.join([*words, "message", str(message_id), "--page", "1"])


async def _say(pipe: OutputPipe, what: str) -> None:
    """One line. It can't be taken for a delivery, which begins with a number."""
    try:
        await pipe.write(f"agent-channel: {' '.join(what.split())}\n".encode())
    except ReaderGone:
        pass
