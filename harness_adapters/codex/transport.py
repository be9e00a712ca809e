"""What the JSON-RPC peer needs of a transport: whole lines out, whole lines in, and an end.

Two implementations lie beside it: `child.py` (a child's stdio) and `daemon.py` (a WebSocket on a unix
socket). The errors say what is proved about the bytes, since an add must never be written twice:

    TransportError
    ├── TransportUnavailable     could not be opened: nothing but `initialize` was written to it
    ├── NothingSent              this line: not one byte of it went out
    └── TransportClosed          the other end is gone: what was sent may or may not have had an effect
"""

from typing import Protocol

LINE_BYTES_MAX = 128 * 1024 * 1024
"""The longest line read: a full queue page, 100 texts of a million ASCII characters, and some. A longer one
ends the connection instead of filling the memory."""


class TransportError(Exception):
    """Anything a transport reports; the message is a reason to show to people."""


class TransportUnavailable(TransportError):
    """It could not be opened, or ended before it was initialized. Use another one, or try again later."""


class NothingSent(TransportError):
    """Not one byte of this line went out, so it can't have had any effect."""


class TransportClosed(TransportError):
    """The other end is gone. A line that was being sent may have arrived in part, whole or not at all."""


class LineTransport(Protocol):
    """One JSON text a line, without the newline, in both directions."""

    async def send(self, line: str) -> None:
        """Hand the whole line to the operating system; one caller at a time.

        Raises:
            NothingSent: not one byte went out.
            TransportClosed: unknown how much of it went out.
        """
        ...

    async def receive(self) -> str:
        """The next line; one caller at a time. May be cancelled without losing a line.

        Raises:
            TransportClosed: there will be no more lines; its text says why.
        """
        ...

    async def aclose(self) -> None:
        """End the connection, in bounded time, whatever the other end does. May be called again."""
        ...
