"""Runs a command as Claude Code's Monitor does, and tells what the session would be told.

    async with monitor("agent-channel monitor", clock=clock) as host:
        event = await host.next_event()

By itself: `python -m fakes.monitor_host [--timeout SECONDS] -- COMMAND...` prints each notification.

The command runs in `/bin/bash -c`, in a session and process group of its own, stdin at /dev/null,
stdout and stderr each a unix stream socket. What becomes of its lines is in monitor_rules.py. At
its time's end, at a stop or for too much output the group gets SIGTERM and, 1.5 s later, SIGKILL; what
it writes after that SIGTERM is read, and the session is told nothing of it.
"""

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process, TaskGroup

from channel.clock import Clock, SystemClock
from fakes.monitor_rules import EventStream, Notification, task_notification
from fakes.recorder import Recorder

TIMEOUT_S_MAX = 1_800.0
"""Claude Code grants no more, whatever `timeout_ms` asks for."""

KILL_AFTER_S = 1.5
READ_BYTES = 65_536


@asynccontextmanager
async def monitor(
    command: str,
    *,
    clock: Clock,
    timeout_s: float = TIMEOUT_S_MAX,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> AsyncIterator["MonitorHost"]:
    """Start `command`; leaving the block ends all that is left of its process group.

    `environment` is what the command finds, with CLAUDE_PID (this process) added; None: this process's own.
    """
    host_out, command_out = socket.socketpair()
    host_err, command_err = socket.socketpair()
    with host_out, host_err:
        with command_out, command_err:
            process = await anyio.open_process(
                ["/bin/bash", "-c", f"eval {shlex.quote(command)} < /dev/null && pwd -P >| /dev/null"],
                stdin=subprocess.DEVNULL,
                stdout=command_out.fileno(),
                stderr=command_err.fileno(),
                env={**(os.environ if environment is None else environment), "CLAUDE_PID": str(os.getpid())},
                cwd=cwd,
                start_new_session=True,
            )
        host_out.setblocking(False)
        host_err.setblocking(False)
        async with anyio.create_task_group() as tasks:
            host = MonitorHost(process, host_out, host_err, clock, min(timeout_s, TIMEOUT_S_MAX), tasks)
            try:
                yield host
            finally:
                tasks.cancel_scope.cancel()
                host.signal_group(signal.SIGKILL)
                with anyio.CancelScope(shield=True):
                    await process.wait()


class MonitorHost:
    """One running Monitor. Waits have no time limit: use `anyio.fail_after`."""

    def __init__(
        self,
        process: Process,
        stdout: socket.socket,
        stderr: socket.socket,
        clock: Clock,
        timeout_s: float,
        tasks: TaskGroup,
    ) -> None:
        self.notifications: Recorder[Notification] = Recorder()
        """All that the session was told, in order."""
        self.stderr = b""
        """Never an event: Claude Code writes it to a file."""
        self._process = process
        self._stdout, self._stderr = stdout, stderr
        self._clock = clock
        self._rules = EventStream(clock.monotonic())
        self._batch_opened = anyio.Event()
        self._may_read = anyio.Event()
        self._may_read.set()
        self._over = False
        """Nothing that the command writes from now on reaches the session."""
        self._ended = anyio.Event()
        self._tasks = tasks
        for task in (self._read_stdout, self._read_stderr, self._tell_batches, self._watch_exit):
            tasks.start_soon(task)
        tasks.start_soon(self._expire_after, timeout_s)

    @property
    def pid(self) -> int:
        """Of the shell around the command, which leads the process group."""
        return self._process.pid

    @property
    def suppressed(self) -> int:
        """Events whose text was lost to the rate limit: 0 for a command that paces itself."""
        return self._rules.events_suppressed

    async def next_event(self) -> str:
        """The text of the next event, notices of the host left out."""
        while True:
            notification = await self.notifications.next()
            if notification.kind == "event":
                return notification.text

    async def wait_ended(self) -> int:
        """The command's exit code; that of a signal is negative."""
        await self._ended.wait()
        assert self._process.returncode is not None
        return self._process.returncode

    def stop(self) -> None:
        """TaskStop: the session is told nothing more."""
        self._over = True
        self.signal_group(signal.SIGTERM)
        self._tasks.start_soon(self._kill_what_is_left)

    def pause_reading(self) -> None:
        """Stop reading, as a host does that hangs or was sent SIGSTOP."""
        self._may_read = anyio.Event()

    def resume_reading(self) -> None:
        self._may_read.set()

    def vanish(self) -> None:
        """Die as by SIGKILL: the sockets close, and the command gets no signal."""
        self._over = True
        for end in (self._stdout, self._stderr):
            end.shutdown(socket.SHUT_RDWR)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the command; none may be left."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass

    async def _kill_what_is_left(self) -> None:
        await self._clock.sleep(KILL_AFTER_S)
        self.signal_group(signal.SIGKILL)

    async def _read_stdout(self) -> None:
        def take(data: bytes) -> None:
            self._rules.feed(data, self._clock.monotonic())
            if self._rules.due_at() is not None:
                self._batch_opened.set()

        await self._read(self._stdout, take)

    async def _read_stderr(self) -> None:
        def take(data: bytes) -> None:
            self.stderr += data

        await self._read(self._stderr, take)

    async def _read(self, end: socket.socket, take: Callable[[bytes], None]) -> None:
        while True:
            await anyio.wait_readable(end)
            await self._may_read.wait()
            data = _received(end)
            if not data:
                return
            take(data)

    async def _tell_batches(self) -> None:
        while True:
            await self._batch_opened.wait()
            self._batch_opened = anyio.Event()
            due_at = self._rules.due_at()
            if due_at is None:
                continue
            await self._clock.sleep(due_at - self._clock.monotonic())
            self._tell(self._rules.collect(self._clock.monotonic()))
            if self._rules.stopped:
                self.stop()
                return

    async def _expire_after(self, timeout_s: float) -> None:
        await self._clock.sleep(timeout_s)
        self._tell(self._rules.expire(timeout_s, self._clock.monotonic()))
        self.stop()

    async def _watch_exit(self) -> None:
        exit_code = await self._process.wait()
        while data := _received(self._stdout):
            self._rules.feed(data, self._clock.monotonic())
        while data := _received(self._stderr):
            self.stderr += data
        self._tell(self._rules.end(exit_code, self._clock.monotonic()))
        self._over = True
        self._ended.set()

    def _tell(self, notifications: list[Notification]) -> None:
        if not self._over:
            for notification in notifications:
                self.notifications.add(notification)


def _received(end: socket.socket) -> bytes:
    """What can be read now."""
    try:
        return end.recv(READ_BYTES)
    except BlockingIOError:
        return b""


async def _run(command: str, timeout_s: float) -> int:
    async with monitor(command, clock=SystemClock(), timeout_s=timeout_s) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_at_a_signal, host)
        tasks.start_soon(_print_notifications, host)
        exit_code = await host.wait_ended()
        await anyio.wait_all_tasks_blocked()  # the last ones are printed
        tasks.cancel_scope.cancel()
    return exit_code if exit_code >= 0 else 128 - exit_code


async def _print_notifications(host: MonitorHost) -> None:
    while True:
        print(task_notification("monitor", "fake", await host.notifications.next()), flush=True)


async def _stop_at_a_signal(host: MonitorHost) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            host.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fakes.monitor_host", description="A Monitor without Claude Code.")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S_MAX, metavar="SECONDS", help="until it expires")
    parser.add_argument("command", nargs="+", help="one shell command, or a program and its arguments, after --")
    arguments = parser.parse_args()
    words = arguments.command
    return anyio.run(_run, words[0] if len(words) == 1 else shlex.join(words), arguments.timeout)


if __name__ == "__main__":
    sys.exit(main())
