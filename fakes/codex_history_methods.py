"""thread/items/list, thread/turns/list, thread/read: what a thread has recorded, as this server sees it."""

# ruff: noqa: N803 - the arguments are the wire's own names

import json
from typing import TYPE_CHECKING, Any

from fakes import codex_shapes as shapes
from fakes.codex_lookups import find, known_thread, page_size
from fakes.codex_params import METHOD_NOT_FOUND, refuse
from fakes.codex_shapes import Json
from fakes.codex_store import Thread

if TYPE_CHECKING:
    from fakes.codex_connection import Connection

ITEMS_PAGE_MAX = 100  # larger limits are cut; those of turns are honoured
ITEMS_SCOPE = "itemsByCreatedAtOrdinal"
OMIT_TURNS = "omit `includeTurns` or set it to `false`, then page with"

Entry = tuple[int, Json]  # rollout ordinal, shape


async def items_list(
    to: "Connection",
    /,
    threadId: str,
    turnId: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
    sortDirection: str | None = None,
    **_: Any,
) -> Json:
    thread = find(to, threadId)
    if thread is None or not thread.on_disk or thread.history_mode == "legacy":
        raise refuse("thread/items/list is not supported yet", METHOD_NOT_FOUND)
    items = to.server.home.items(thread.id)
    entries = [(item.ordinal, shapes.listed_item(item)) for item in items if turnId in (None, item.turn_id)]
    size = min(page_size(limit), ITEMS_PAGE_MAX)
    return _page(thread.id, ITEMS_SCOPE, entries, sortDirection or "asc", cursor, size)


async def turns_list(
    to: "Connection",
    /,
    threadId: str,
    cursor: str | None = None,
    limit: int | None = None,
    sortDirection: str | None = None,
    itemsView: str | None = None,
    **_: Any,
) -> Json:
    thread = known_thread(to, threadId)
    if not thread.on_disk:
        raise refuse(
            f"thread {thread.id} is not materialized yet; thread/turns/list is unavailable before first user message"
        )
    entries = [
        (turn.ordinal, shape)
        for turn, shape in zip(to.server.home.turns(thread.id), _turns(to, thread, itemsView or "summary"), strict=True)
    ]
    return _page(thread.id, "turns", entries, sortDirection or "desc", cursor, page_size(limit))


async def thread_read(to: "Connection", /, threadId: str, includeTurns: bool | None = None, **_: Any) -> Json:
    thread = known_thread(to, threadId)
    shape = to.server.thread_shape(thread)
    if includeTurns:
        shape["turns"] = await full_turns(to, thread, OMIT_TURNS)
    loaded = to.server.loaded.get(thread.id)
    turns = to.server.home.turns(thread.id)
    read_state = shapes.read_state(turns[0].id, thread.id) if turns else None
    return {"thread": shape, "readState": loaded.read_state() if loaded and turns else read_state}


async def full_turns(to: "Connection", thread: Thread, advice: str) -> list[Json]:
    """All turns with all items; a client that asks this of a paginated thread is told not to."""
    if thread.history_mode == "paginated":
        summary = (
            f"Full-history hydration is deprecated for paginated threads; {advice}"
            " `thread/turns/list` and `thread/items/list`."
        )
        await to.notify("deprecationNotice", {"summary": summary, "details": None})
    return _turns(to, thread, "full")


def newest_cursors(to: "Connection", thread: Thread) -> Json:
    """The cursors in the answer to thread/resume; None for a thread without turns or items."""
    home = to.server.home
    newest = {
        "turnsBackwardsCursor": ("turns", [turn.ordinal for turn in home.turns(thread.id)]),
        "itemsBackwardsCursor": (ITEMS_SCOPE, [item.ordinal for item in home.items(thread.id)]),
    }
    return {
        name: _cursor(thread.id, scope, ordinals[-1], include=True) if ordinals else None
        for name, (scope, ordinals) in newest.items()
    }


def _turns(to: "Connection", thread: Thread, view: str) -> list[Json]:
    home = to.server.home
    here = thread.id in to.server.loaded
    items = home.items(thread.id)
    return [shapes.listed_turn(turn, items, view, loaded_here=here) for turn in home.turns(thread.id)]


def _page(thread_id: str, kind: str, entries: list[Entry], direction: str, cursor: str | None, size: int) -> Json:
    """One page of `entries` (oldest first), with the cursors to the next one and back to this one."""
    ordered = entries if direction == "asc" else entries[::-1]
    if cursor is not None:
        anchor, with_anchor = _anchor(cursor)
        ordered = [
            (ordinal, shape)
            for ordinal, shape in ordered
            if (ordinal > anchor if direction == "asc" else ordinal < anchor) or (with_anchor and ordinal == anchor)
        ]
    page = ordered[:size]
    more = len(ordered) > size
    return {
        "data": [shape for _, shape in page],
        "nextCursor": _cursor(thread_id, kind, page[-1][0], include=False) if more else None,
        "backwardsCursor": _cursor(thread_id, kind, page[0][0], include=True) if page else None,
    }


def _cursor(thread_id: str, kind: str, ordinal: int, *, include: bool) -> str:
    where = {
        "requestedThreadId": thread_id,
        "rolloutOrdinal": ordinal,
        "includeAnchor": include,
        "scope": {"kind": kind},
    }
    return json.dumps(where, separators=(",", ":"))


def _anchor(cursor: str) -> tuple[int, bool]:
    try:
        where = json.loads(cursor)
        return int(where["rolloutOrdinal"]), bool(where["includeAnchor"])
    except (ValueError, KeyError, TypeError):
        raise refuse(f"invalid cursor: {cursor}") from None
