"""thread/queue/*: the checks in the real server's order, the effect, the answer.

The order matters to a client that classifies refusals, and was measured: thread id, thread known, archived,
sub-agent, input empty, input too large, queue full.
"""

# ruff: noqa: N803 - the arguments are the wire's own names

from typing import TYPE_CHECKING, Any

from jsonrpcserver import JsonRpcError

from fakes import codex_shapes as shapes
from fakes.codex_lookups import page_size, queue_thread, with_elements
from fakes.codex_params import INVALID_PARAMS, refuse
from fakes.codex_shapes import Json
from fakes.codex_store import Input, QueueIsFull, Thread

if TYPE_CHECKING:
    from fakes.codex_connection import Connection

INPUT_CHARS_MAX = 1_048_576  # code points, over all text parts


async def queue_add(to: "Connection", /, threadId: str, input: Input, clientUserMessageId: str, **_: Any) -> Json:
    thread = queue_thread(to, threadId)
    if thread.parent_id is not None and thread.id not in to.server.loaded:
        raise refuse("direct app-server input is not allowed for unloaded spawned sub-agents")
    _check_input(input)
    try:
        row = to.server.home.add_row(thread.id, with_elements(input), clientUserMessageId)
    except QueueIsFull:
        raise refuse("queue cannot contain more than 100 submissions") from None
    await _queue_changed(to, thread)
    return {"queuedSubmission": shapes.submission(row)}


async def queue_list(
    to: "Connection", /, threadId: str, cursor: str | None = None, limit: int | None = None, **_: Any
) -> Json:
    thread = queue_thread(to, threadId)
    start = _offset(cursor)
    stop = start + page_size(limit)
    rows = to.server.home.rows(thread.id)
    return {
        "data": [shapes.submission(row) for row in rows[start:stop]],
        "nextCursor": str(stop) if stop < len(rows) else None,
    }


async def queue_update(to: "Connection", /, threadId: str, queuedSubmissionId: str, input: Input, **_: Any) -> Json:
    thread = queue_thread(to, threadId)
    _check_input(input)
    home = to.server.home
    if queuedSubmissionId not in {row.id for row in home.rows(thread.id)}:
        raise refuse(f"queued submission not found: {queuedSubmissionId}")
    home.update_row(queuedSubmissionId, with_elements(input))
    await _queue_changed(to, thread)
    row = next(row for row in home.rows(thread.id) if row.id == queuedSubmissionId)
    return {"queuedSubmission": shapes.submission(row)}


async def queue_delete(to: "Connection", /, threadId: str, queuedSubmissionId: str, **_: Any) -> Json:
    thread = queue_thread(to, threadId)
    deleted = to.server.home.delete_row(thread.id, queuedSubmissionId)
    if deleted:
        await _queue_changed(to, thread)
    return {"deleted": deleted}


async def queue_start(to: "Connection", /, threadId: str, **_: Any) -> Json:
    thread = queue_thread(to, threadId)
    loaded = to.server.loaded.get(thread.id)
    if loaded is None:
        raise refuse("resume the thread before starting a queued message")
    if not to.server.home.rows(thread.id):
        raise refuse("queue is empty")
    if loaded.owner.running is not None:
        raise refuse("thread already has an active or pending turn")
    turn = loaded.start_queued()
    assert turn is not None  # there was a row, and nobody else may take it
    await loaded.tell_queue_changed()
    return {"turn": shapes.new_turn(turn, started=False)}


def _check_input(given: Input) -> None:
    if not given:
        raise refuse("only user input can be added to the user-message queue")
    chars = sum(len(part.get("text", "")) for part in given)
    if chars > INPUT_CHARS_MAX:
        raise JsonRpcError(
            INVALID_PARAMS,
            f"Input exceeds the maximum length of {INPUT_CHARS_MAX} characters.",
            {"input_error_code": "input_too_large", "max_chars": INPUT_CHARS_MAX, "actual_chars": chars},
        )


def _offset(cursor: str | None) -> int:
    """The queue's cursor is a plain offset, so rows consumed between two pages shift it."""
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit():
        fault = "invalid digit found in string" if cursor else "cannot parse integer from empty string"
        raise refuse(f"invalid queue pagination cursor: {fault}")
    return int(cursor)


async def _queue_changed(to: "Connection", thread: Thread) -> None:
    loaded = to.server.loaded.get(thread.id)
    if loaded is not None:
        loaded.poke()
        await loaded.tell_queue_changed()
