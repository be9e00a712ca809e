"""The places where a process can die, by name: before and after each commit, write and answer, and inside a write.

Inert without a hook, which only a test's own process sets (`tests/crash/faulted.py`): a place then costs one
comparison. A hook ends or stops the process there.
"""

from enum import Enum
from typing import Protocol


class Place(str, Enum):
    """What stands in brackets is told with each passing (`of`)."""

    UNCOMMITTED = "uncommitted"
    """Before a transaction's COMMIT, or before its last statement where both go to SQLite in one (its name)."""
    COMMITTED = "committed"
    """(The transaction's name.)"""
    FLUSH_UNWRITTEN = "flush_unwritten"
    IN_FLUSH = "in_flush"
    """Some bytes of a flush went to the Monitor's pipe, and some did not."""
    FLUSH_WRITTEN = "flush_written"
    """The pipe holds all of it; the reader may have read it."""
    FLUSH_TAKEN = "flush_taken"
    """The reader emptied the pipe; nothing says so yet."""
    TRANSPORT_OPENED = "transport_opened"
    """To an app-server that was asked nothing yet (the transport's name)."""
    TRANSPORT_FAILED = "transport_failed"
    """An app-server can't be reached, and the next was not tried yet (the transport's name)."""
    REQUEST_UNWRITTEN = "request_unwritten"
    """Not one byte of a line to an app-server is out (the method)."""
    IN_REQUEST = "in_request"
    """Some bytes of a line went to a child's stdin, and some did not."""
    REQUEST_WRITTEN = "request_written"
    """The transport has the whole line (the method)."""
    REQUEST_ANSWERED = "request_answered"
    """The answer is known to this process alone (the method)."""
    LOOKED = "looked"
    """A look-up has its evidence; nothing of it is recorded."""
    CALL_UNANSWERED = "call_unanswered"
    """A tool did its work; nobody has its answer (the tool)."""


class Hook(Protocol):
    """What a test does at the places."""

    def passing(self, place: Place, of: str) -> None: ...

    def written_at_once(self, place: Place, data: memoryview) -> memoryview: ...


_hook: Hook | None = None


def set_hook(hook: Hook) -> None:
    """For a test, before anything runs."""
    global _hook
    _hook = hook


def passing(place: Place, of: str = "") -> None:
    """This process is at `place`."""
    if _hook is not None:
        _hook.passing(place, of)


def written_at_once(place: Place, data: memoryview) -> memoryview:
    """How much of `data` is written in one go: all, unless a test wants to be inside of it, at `place`."""
    return data if _hook is None else _hook.written_at_once(place, data)
