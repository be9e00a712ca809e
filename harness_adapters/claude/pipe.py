"""The streamer's stdout: whole flushes, whether the reader took them, and whether there is a reader.

Claude Code's Monitor gives its command one end of a unix stream socket in blocking mode; a pipe
works too (a person's shell, another host). POLLHUP and POLLERR tell of the reader's death; being
readable does not, since a host may shut down its sending side and read on. The flags of the
descriptor stay as they are: whoever shares it would not expect EAGAIN.
"""

import array
import fcntl
import os
import select
import stat
import sys
import termios

import anyio
import anyio.lowlevel

from channel.clock import Clock
from channel.fault_places import Place, passing, written_at_once

_PIPE_BYTES_MAX = select.PIPE_BUF
"""A blocking pipe that polls writable takes this much without blocking."""

_LINUX_SOCKET_BYTES_MAX = 32_768
"""A unix socket polls writable while three quarters of its buffer of 208 kB are free, so it takes a whole flush
(at most 9 kB) in one call: no death of this process leaves the reader with half of one."""

_LOOK_S_FIRST, _LOOK_S_MAX = 0.005, 1.0
"""How long to wait between two looks whether the reader took all: doubled each time. It reads within
milliseconds, or it is stopped and may stay so for hours."""

_GRACE_S = 1.0
"""What a reader gets where nobody can tell what was read."""

_DEATH_LOOK_S = 5.0
"""Between two looks at the reader where the system has no epoll."""


class ReaderGone(ConnectionError):
    """Nobody reads this pipe any more, and nobody ever will: what was not taken yet may be lost."""


class OutputPipe:
    """One descriptor that a harness reads. At most one flush at a time; `wait_dead` beside it.

    `inherited`: another process may have been killed in the middle of a line of its own to it.
    """

    def __init__(self, fd: int, clock: Clock, *, inherited: bool = False) -> None:
        self._fd = fd
        self._clock = clock
        self._unended_line = inherited
        is_socket = sys.platform == "linux" and stat.S_ISSOCK(os.fstat(fd).st_mode)
        self._write_bytes_max = _LINUX_SOCKET_BYTES_MAX if is_socket else _PIPE_BYTES_MAX

    async def write(self, data: bytes) -> None:
        """All of `data` into the pipe, however long the reader leaves it full.

        Raises:
            ReaderGone: part of it may have been written.
        """
        passing(Place.FLUSH_UNWRITTEN)
        unwritten = memoryview(b"\n" + data if self._unended_line else data)
        self._unended_line = False
        while unwritten:
            await self._wait_writable()
            try:
                written = os.write(self._fd, written_at_once(Place.IN_FLUSH, unwritten[: self._write_bytes_max]))
            except BlockingIOError:
                continue
            except (BrokenPipeError, ConnectionResetError) as error:
                raise ReaderGone("the reader of the pipe is gone") from error
            unwritten = unwritten[written:]
        passing(Place.FLUSH_WRITTEN)

    async def wait_taken(self) -> None:
        """Return when the reader has emptied the pipe; where that can't be seen, after a grace of a second.

        Raises:
            ReaderGone: it died, and what it had read of the last flush is unknown.
        """
        if self.unread_bytes() is None:
            await self._clock.sleep(_GRACE_S)
        look_s = _LOOK_S_FIRST
        while self.unread_bytes():
            self._raise_if_dead()
            await self._clock.sleep(look_s)
            look_s = min(2 * look_s, _LOOK_S_MAX)
        # A dying reader empties a socket too: only one that still lives has taken what was in it.
        self._raise_if_dead()
        passing(Place.FLUSH_TAKEN)

    def unread_bytes(self) -> int | None:
        """What the reader has not taken yet; on a socket a little more than was written. None: can't be known."""
        mode = os.fstat(self._fd).st_mode
        if sys.platform != "linux" or not (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
            return None
        request = termios.TIOCOUTQ if stat.S_ISSOCK(mode) else termios.FIONREAD  # SIOCOUTQ = TIOCOUTQ
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self._fd, request, count)
        except OSError:
            return None
        return count[0]

    def is_dead(self) -> bool:
        return self._polls(0)  # hang-up and error are told unasked

    def _polls(self, events: int) -> bool:
        poll = select.poll()
        poll.register(self._fd, events)
        return bool(poll.poll(0))

    async def wait_dead(self) -> None:
        """Return when nobody reads the pipe any more. Costs nothing until then; a file never dies."""
        if sys.platform != "linux":
            while not self.is_dead():
                await self._clock.sleep(_DEATH_LOOK_S)
            return
        with select.epoll() as epoll:
            try:
                epoll.register(self._fd, 0)
            except PermissionError:  # a regular file
                await anyio.sleep_forever()
            # The event loop can't watch for a hang-up alone. This epoll does, and it is itself readable
            # when it has something to tell.
            await anyio.wait_readable(epoll.fileno())

    async def _wait_writable(self) -> None:
        if self._polls(select.POLLOUT):
            return  # nearly always, and a hundredth of the event loop's time
        try:
            await anyio.wait_writable(self._fd)
        except PermissionError:  # a regular file is always writable
            await anyio.lowlevel.checkpoint()

    def _raise_if_dead(self) -> None:
        if self.is_dead():
            raise ReaderGone("the reader of the pipe is gone")
