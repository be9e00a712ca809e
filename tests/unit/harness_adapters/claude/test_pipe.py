"""The pipe on real sockets, pipes and processes: the rules are ours and Linux's."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from channel.clock import SystemClock
from harness_adapters.claude.framing import FLUSH_UNITS_MAX
from harness_adapters.claude.pipe import OutputPipe, ReaderGone

LIMIT_S = 5


class Ends(NamedTuple):
    write_fd: int
    read_fd: int
    close_reader: Callable[[], None]

    async def read(self) -> bytes:
        await anyio.wait_readable(self.read_fd)
        return os.read(self.read_fd, 1_000_000)


@contextmanager
def half_closed_socket() -> Iterator[Ends]:
    """The reader will never send: the writer's end is at its EOF, and readable, from the start."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.shutdown(socket.SHUT_WR)
        yield Ends(ours.fileno(), theirs.fileno(), theirs.close)


@contextmanager
def plain_socket() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Ends(ours.fileno(), theirs.fileno(), theirs.close)


@contextmanager
def plain_pipe() -> Iterator[Ends]:
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd, "rb") as reader, os.fdopen(write_fd, "wb"):
        yield Ends(write_fd, read_fd, reader.close)


every_kind = pytest.mark.parametrize("opened", [half_closed_socket, plain_socket, plain_pipe])
Opened = Callable[[], "contextmanager[Ends]"]


@pytest.mark.fault("F1")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a socket's buffer is smaller than a flush can be")
async def test_a_whole_flush_goes_into_a_socket_in_one_write() -> None:
    """So SIGKILL can't cut one in two. A socket that keeps each write apart tells how many there were."""
    flush = ("好" * FLUSH_UNITS_MAX).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, anyio.fail_after(LIMIT_S):
        await OutputPipe(ours.fileno(), SystemClock()).write(flush)
        assert theirs.recv(100_000) == flush


@every_kind
async def test_what_is_written_arrives_and_is_known_to_be_taken_only_when_it_was_read(opened: Opened) -> None:
    with opened() as ends, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(ends.write_fd, SystemClock())

        await pipe.write(b"x" * 9_000)
        assert pipe.unread_bytes()
        assert await ends.read() == b"x" * 9_000
        assert pipe.unread_bytes() == 0
        await pipe.wait_taken()


@every_kind
async def test_a_reader_that_closes_is_noticed_by_a_waiting_task(opened: Opened) -> None:
    with opened() as ends, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(ends.write_fd, SystemClock())
        noticed = anyio.Event()

        async def watch() -> None:
            await pipe.wait_dead()
            noticed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await pipe.write(b"line\n")
            await ends.read()
            await pipe.wait_taken()
            await anyio.wait_all_tasks_blocked()
            assert not noticed.is_set()
            assert not pipe.is_dead()

            ends.close_reader()
            await noticed.wait()
            assert pipe.is_dead()


@every_kind
async def test_writing_without_a_reader_says_so(opened: Opened) -> None:
    with opened() as ends, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(ends.write_fd, SystemClock())
        ends.close_reader()

        with pytest.raises(ReaderGone):
            await pipe.write(b"line\n")


@every_kind
async def test_a_reader_that_closes_with_text_unread_has_not_taken_it(opened: Opened) -> None:
    with opened() as ends, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(ends.write_fd, SystemClock())
        await pipe.write(b"line\n")
        ends.close_reader()

        with pytest.raises(ReaderGone):
            await pipe.wait_taken()


class ClockThatActs(SystemClock):
    """Does something at a sleep, the moment a test wants: when the pipe has looked in vain."""

    def __init__(self, at_sleep: int, act: Callable[[], None]) -> None:
        self._at_sleep = at_sleep
        self._act = act
        self.slept_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        if len(self.slept_s) == self._at_sleep:
            self._act()
        await anyio.sleep(0.001)


@contextmanager
def stopped_reader() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A process that reads a socket, if SIGSTOP did not hold it."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.shutdown(socket.SHUT_WR)
            process = subprocess.Popen(["cat"], stdin=theirs, stdout=subprocess.DEVNULL)
        with process:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            yield ours.fileno(), process
            process.kill()


@pytest.mark.fault("F16")
async def test_a_stopped_reader_has_taken_nothing_until_it_goes_on() -> None:
    with stopped_reader() as (fd, process), anyio.fail_after(LIMIT_S):
        clock = ClockThatActs(12, lambda: process.send_signal(signal.SIGCONT))
        pipe = OutputPipe(fd, clock)

        await pipe.write(b"x" * 9_000)
        await pipe.wait_taken()

        assert len(clock.slept_s) >= 12
        assert clock.slept_s[:3] == [0.005, 0.01, 0.02]
        assert max(clock.slept_s) == 1.0


@pytest.mark.fault("F16")
async def test_a_stopped_reader_that_is_killed_ends_the_wait() -> None:
    with stopped_reader() as (fd, process), anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(fd, ClockThatActs(5, process.kill))
        await pipe.write(b"line\n")

        with pytest.raises(ReaderGone):
            await pipe.wait_taken()
        await pipe.wait_dead()


@pytest.mark.fault("F16")
async def test_a_full_pipe_blocks_the_writer_and_not_the_program_until_the_reader_is_killed() -> None:
    with stopped_reader() as (fd, process), anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(fd, SystemClock())
        gone = anyio.Event()

        async def flood() -> None:
            with pytest.raises(ReaderGone):
                await pipe.write(b"x" * 2_000_000)
            gone.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            await anyio.wait_all_tasks_blocked()
            assert not gone.is_set()
            process.kill()
            await gone.wait()


@pytest.mark.parametrize("opened", [half_closed_socket, plain_pipe])
async def test_more_than_the_pipe_holds_is_written_while_the_reader_reads(opened: Opened) -> None:
    with opened() as ends, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(ends.write_fd, SystemClock())
        read = bytearray()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.write, b"0123456789" * 100_000)
            while len(read) < 1_000_000:
                read += await ends.read()

        assert bytes(read) == b"0123456789" * 100_000


async def test_a_file_takes_everything_after_a_grace_and_never_dies(tmp_path: Path) -> None:
    """`agent-channel monitor > file`: nobody can tell who reads it."""
    clock = ClockThatActs(1, lambda: None)
    with (tmp_path / "out").open("wb", buffering=0) as file, anyio.fail_after(LIMIT_S):
        pipe = OutputPipe(file.fileno(), clock)

        await pipe.write(b"line\n")
        assert pipe.unread_bytes() is None
        await pipe.wait_taken()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.wait_dead)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    assert clock.slept_s == [1.0]
    assert (tmp_path / "out").read_bytes() == b"line\n"


async def test_the_descriptor_keeps_its_flags() -> None:
    """Another program may share it and does not expect EAGAIN."""
    with plain_pipe() as ends, anyio.fail_after(LIMIT_S):
        assert os.get_blocking(ends.write_fd)
        await OutputPipe(ends.write_fd, SystemClock()).write(b"line\n")
        assert os.get_blocking(ends.write_fd)


async def test_where_another_process_may_have_left_half_a_line_the_first_write_ends_it() -> None:
    with anyio.fail_after(LIMIT_S), plain_pipe() as ends:
        os.write(ends.write_fd, b"1 hall alice\n|hel")
        pipe = OutputPipe(ends.write_fd, SystemClock(), inherited=True)
        await pipe.write(b"1 hall alice repeat=1\n|hello\n")
        await pipe.write(b"2 hall alice\n|bye\n")

        assert await ends.read() == b"1 hall alice\n|hel\n1 hall alice repeat=1\n|hello\n2 hall alice\n|bye\n"
