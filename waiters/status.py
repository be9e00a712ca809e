"""The words of `waiter_detail`: what a waiter says of itself, and what to do is in docs/troubleshooting.md."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from channel.delivery_states import State

UNCERTAIN = "delivery uncertain"
CONFLICT = "key conflict"
QUEUE_API_UNSUPPORTED = "queue API unsupported"
THREAD_UNKNOWN = "thread unknown"
THREAD_ARCHIVED = "thread archived"
THREAD_OF_SUB_AGENT = "thread of a sub-agent"
QUEUE_FULL = "queue full"
OWNED_BY_EXEC = "owned by codex exec"
APP_SERVER_UNAVAILABLE = "app-server unavailable"
VERSIONS_DIFFER = "versions differ"
READER_BLOCKED = "reader blocked"
WAITER_FAILED = "waiter failed"
PROGRAM_GONE = "program gone"
STORE_UNAVAILABLE = "store unavailable"

WORDS = (
    UNCERTAIN,
    CONFLICT,
    QUEUE_API_UNSUPPORTED,
    THREAD_UNKNOWN,
    THREAD_ARCHIVED,
    THREAD_OF_SUB_AGENT,
    QUEUE_FULL,
    OWNED_BY_EXEC,
    APP_SERVER_UNAVAILABLE,
    VERSIONS_DIFFER,
    READER_BLOCKED,
    WAITER_FAILED,
    PROGRAM_GONE,
    STORE_UNAVAILABLE,
)
"""All of them; each begins a detail, and each stands in docs/troubleshooting.md with what to do."""

IDS_SHOWN = 20


def compose(trouble: str, troubled: Mapping[State, Sequence[int]]) -> str:
    """One line: the receiver's trouble, then the messages that a person should know of."""
    parts = [trouble] if trouble else []
    for state, word in ((State.UNCERTAIN, UNCERTAIN), (State.CONFLICT, CONFLICT)):
        ids = troubled.get(state, ())
        if ids:
            more = f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else ""
            parts.append(f"{word}: {', '.join(map(str, ids[:IDS_SHOWN]))}{more}")
    return "; ".join(parts)


def at(wall_clock_ms: int) -> str:
    """A time for people and models: UTC, to the second."""
    return datetime.fromtimestamp(wall_clock_ms / 1_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
