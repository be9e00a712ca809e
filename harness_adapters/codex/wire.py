"""The shapes of the Codex app-server that are relied on, and nothing more.

Only the members named here are read or sent; all others are ignored, since between versions only optional
ones were added. Measured with Codex 0.148.0 to 0.171.0. This module does no I/O and knows no errors of the
server (see `refusals.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INITIALIZE = "initialize"
INITIALIZED = "initialized"
QUEUE_ADD = "thread/queue/add"
QUEUE_LIST = "thread/queue/list"
ITEMS_LIST = "thread/items/list"
TURNS_LIST = "thread/turns/list"

METHODS_EVER_SENT = frozenset({INITIALIZE, INITIALIZED, QUEUE_ADD, QUEUE_LIST, ITEMS_LIST, TURNS_LIST})
"""Everything else would take the thread from its owner, overrule the user, or remove what was added."""

PAGE_LIMIT = 100
"""Rows asked for at once: all that a queue can hold (a second page could skip rows that were consumed in
between, as its cursor is an offset), and the most that `thread/items/list` gives."""

_CODEX_VERSION = re.compile(r"[^/]+/(\S+)")


class UnexpectedShape(ValueError):
    """An answer that lacks what this client relies on; its text says what."""


@dataclass(frozen=True)
class Added:
    """The answer to `thread/queue/add`: the message waits in the thread's queue under this id."""

    submission_id: str


@dataclass(frozen=True)
class QueuedSubmission:
    """A row of a thread's queue. `text` is None unless the input is exactly one text."""

    submission_id: str
    key: str | None
    text: str | None


@dataclass(frozen=True)
class UserMessage:
    """A user's message among a thread's items, typed or consumed from the queue.

    `text` is None unless the content is exactly one text. `started_at_ms` is the wall clock of the Codex
    process that recorded it; older versions may leave it out.
    """

    key: str | None
    text: str | None
    turn_id: str | None
    started_at_ms: int | None


@dataclass(frozen=True)
class Page:
    """One page of a thread's history, newest first: its user messages, and where to go on."""

    user_messages: tuple[UserMessage, ...]
    oldest_ms: int | None
    """When the oldest item of the page that tells its time began, of any type."""
    next_cursor: str | None


def initialize_params(client_version: str) -> dict[str, Any]:
    """Queue methods need `experimentalApi`; the name becomes part of the server's own User-Agent header."""
    return {
        "clientInfo": {"name": "agent-channel", "title": "agent-channel", "version": client_version},
        "capabilities": {"experimentalApi": True},
    }


def add_params(thread_id: str, key: str, text: str) -> dict[str, Any]:
    return {
        "threadId": thread_id,
        "clientUserMessageId": key,
        "input": [{"type": "text", "text": text, "text_elements": []}],
    }


def queue_list_params(thread_id: str) -> dict[str, Any]:
    return {"threadId": thread_id, "limit": PAGE_LIMIT}


def items_list_params(thread_id: str, cursor: str | None) -> dict[str, Any]:
    return _with_cursor({"threadId": thread_id, "limit": PAGE_LIMIT, "sortDirection": "desc"}, cursor)


def turns_list_params(thread_id: str, cursor: str | None) -> dict[str, Any]:
    """Turns come newest first by default; without `itemsView` they come with a summary of their items."""
    return _with_cursor({"threadId": thread_id, "limit": PAGE_LIMIT, "itemsView": "full"}, cursor)


def _with_cursor(params: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    return params if cursor is None else {**params, "cursor": cursor}


def codex_version(result: object) -> str | None:
    """The version that the answer to `initialize` tells: `userAgent` is `<first client's name>/<Codex version> ...`.

    For messages to people; what the server can do is probed, never read off it.
    """
    match = _CODEX_VERSION.match(_string(_object(result, "the answer").get("userAgent")) or "")
    return match[1] if match else None


def added(result: object) -> Added:
    """Raises UnexpectedShape where the answer holds no id: then it proves nothing."""
    row = _object(_object(result, "the answer").get("queuedSubmission"), "queuedSubmission")
    return Added(submission_id=_row_id(row))


def queued_submissions(result: object) -> list[QueuedSubmission]:
    """The rows of one page, first to be consumed first."""
    return [
        QueuedSubmission(_row_id(row), _string(row.get("clientUserMessageId")), _only_text(row.get("input")))
        for row in _rows(result)
    ]


_Entry = tuple[Mapping[str, object], str | None, object]
"""An item, its turn, and the time that stands beside the item where there is one."""


def items_page(result: object) -> Page:
    """A page of `thread/items/list` asked for in descending order."""
    entries = [
        (_object(row.get("item"), "item"), _string(row.get("turnId")), row.get("startedAtMs")) for row in _rows(result)
    ]
    return _page(result, entries)


def turns_page(result: object) -> Page:
    """A page of `thread/turns/list`: within a turn the items stand oldest first, so they are turned round."""
    entries: list[_Entry] = []
    for turn in _rows(result):
        for item in reversed(_list(turn.get("items"), "items")):
            entries.append((_object(item, "item"), _string(turn.get("id")), None))
    return _page(result, entries)


def _page(result: object, entries: list[_Entry]) -> Page:
    messages = []
    times = []
    for item, turn_id, time_beside in entries:
        started_at_ms = _integer(item.get("startedAtMs"))
        if started_at_ms is None:
            started_at_ms = _integer(time_beside)
        if started_at_ms is not None:
            times.append(started_at_ms)
        if item.get("type") == "userMessage":
            key, text = _string(item.get("clientId")), _only_text(item.get("content"))
            messages.append(UserMessage(key, text, turn_id, started_at_ms))
    next_cursor = _string(_object(result, "the answer").get("nextCursor"))
    return Page(tuple(messages), times[-1] if times else None, next_cursor)


def _rows(result: object) -> list[Mapping[str, object]]:
    data = _list(_object(result, "the answer").get("data"), "data")
    return [_object(row, "a row of data") for row in data]


def _row_id(row: Mapping[str, object]) -> str:
    found = _string(row.get("id"))
    if found is None:
        raise UnexpectedShape("a queued submission has no id")
    return found


def _only_text(parts: object) -> str | None:
    if not (isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict)):
        return None
    return _string(parts[0].get("text")) if parts[0].get("type") == "text" else None


def _object(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise UnexpectedShape(f"{what} is {type(value).__name__}, not an object")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise UnexpectedShape(f"{what} is {type(value).__name__}, not a list")
    return value


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
