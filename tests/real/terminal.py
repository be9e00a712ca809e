"""A program in a pseudo-terminal, for tests of terminal programs: typing, pressing, hanging up.

It answers the few questions that such programs put to their terminal at the start, and keeps what they
write without its escape sequences, to be shown when a test fails. It is no screen.
"""

import fcntl
import os
import re
import struct
import sys
import termios
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process

ROWS, COLUMNS = 50, 200
SHOWN_CHARACTERS = 4_000  # enough for a screen or two
BETWEEN_PRESSES_S = 0.3
READ_BYTES = 65_536
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
ENTER, ESCAPE, CTRL_C = "\r", "\x1b", "\x03"

# exec in place, so that the program keeps the id and has this terminal as its controlling one
OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHM])")
ANSWERS = {
    b"\x1b[6n": "\x1b[1;1R",  # where is the cursor?
    b"\x1b[c": "\x1b[?62;c",  # what are you?
}


class Terminal:
    """The running program, seen from the keyboard. Make it with `terminal`."""

    def __init__(self, process: Process, keyboard: int) -> None:
        self.process = process
        self._keyboard = keyboard
        self._output = b""
        self._grown = anyio.Event()
        self._ended = anyio.Event()

    def raw_output(self) -> str:
        """All that was written, as it came."""
        return self._output.decode(errors="replace")

    async def wait_until_read(self) -> None:
        """Wait until all is read that a program wrote before its end."""
        await self._ended.wait()

    def output(self, since: int = 0) -> str:
        """What was written after the first `since` bytes, without escape sequences."""
        return ESCAPES.sub(b"", self._output[since:]).decode(errors="replace")

    async def wait_for_output(self, text: str, *, since: int = 0) -> None:
        """Wait until `text` was written; blanks don't count, since programs move the cursor over them.

        Raises AssertionError if the program ends without it.
        """
        wanted = "".join(text.split())
        while wanted not in "".join(self.output(since).split()):
            assert not self._ended.is_set(), f"it ended without {text!r}: {self.output()[-2_000:]}"
            await self._grown.wait()

    def press(self, *keys: str) -> None:
        """Send keys as they are: `ENTER`, `ESCAPE`, `CTRL_C`, a letter."""
        os.write(self._keyboard, "".join(keys).encode())

    async def submit(self, text: str) -> None:
        """Paste one short line, and press Enter once the program shows it."""
        shown = len(self._output)
        self.press(PASTE_START, text, PASTE_END)
        await self.wait_for_output(text, since=shown)
        self.press(ENTER)

    async def quit(self) -> int:
        """Press Ctrl-C, as often as it takes; the exit code. A turn that still runs is interrupted."""
        while self.process.returncode is None:
            with suppress(OSError):  # it may close its side in between
                self.press(CTRL_C)
            with anyio.move_on_after(BETWEEN_PRESSES_S):
                await self.process.wait()
        return self.process.returncode

    def hang_up(self) -> None:
        """Close the terminal's window: the program gets SIGHUP."""
        if self._keyboard >= 0:
            anyio.notify_closing(self._keyboard)
            os.close(self._keyboard)
            self._keyboard = -1

    async def _read(self) -> None:
        """Take in what the program writes, and answer its questions, until either side is closed."""
        with suppress(anyio.ClosedResourceError, OSError):  # hung up by us; EIO: by the program
            while True:
                await anyio.wait_readable(self._keyboard)
                written = os.read(self._keyboard, READ_BYTES)
                for question, answer in ANSWERS.items():
                    self.press(answer * written.count(question))
                self._output += written
                self._grown.set()
                self._grown = anyio.Event()
        self._ended.set()
        self._grown.set()


@asynccontextmanager
async def terminal(command: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path) -> AsyncGenerator[Terminal]:
    """Run `command` in a terminal of its own; it is killed when the context is left."""
    keyboard, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    launcher = [sys.executable, "-I", "-S", "-c", OWN_TERMINAL]
    process = await anyio.open_process(
        [*launcher, *map(str, command)], stdin=screen, stdout=screen, stderr=screen, env=env, cwd=cwd
    )
    os.close(screen)
    running = Terminal(process, keyboard)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running._read)
            yield running
            tasks.cancel_scope.cancel()
    except BaseException:
        print(f"the terminal showed, at the end: {running.output()[-SHOWN_CHARACTERS:]}")  # for pytest's report
        raise
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.wait()
        running.hang_up()
