"""The typed calls that delivery needs of a Codex app-server, and no others.

Adding is never repeated here, whatever happens: the server takes the same key any number of times. Errors:
those of `jsonrpc_peer.py` (what is proved about the bytes) and of `refusals.py` (what the server said).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness_adapters.codex import wire
from harness_adapters.codex.jsonrpc_peer import AnswerNotUnderstood, ErrorAnswer, Peer
from harness_adapters.codex.refusals import HistoryNotPaged, Refusal, classify

ANSWER_S_MAX = 30.0
"""An add takes 2 ms, with 4 MiB 0.4 s; a database that another process holds may take many seconds. A later
answer still counts as evidence."""

HISTORY_PAGES_MAX = 50
"""Pages of 100 items (or turns) read in one look-up; a busy thread records about a thousand items an hour."""

CLOCK_SET_BACK_MS_MAX = 2 * 60 * 60 * 1000
"""How far the wall clock may have been set back since a hand-over without hiding its item."""

_Shape = TypeVar("_Shape")


@dataclass(frozen=True)
class History:
    """The user messages of a thread, newest first, as far back as was asked.

    `complete` is False when the reading ended at HISTORY_PAGES_MAX: then absence says nothing.
    """

    user_messages: tuple[wire.UserMessage, ...]
    complete: bool


@dataclass(frozen=True)
class LateAdd:
    """The answer to an add that came after its caller had gone: exactly one of the last two is set."""

    thread_id: str
    key: str
    added: wire.Added | None
    refusal: Refusal | None


class ThreadQueue:
    """Calls over one initialized peer, for any thread of its CODEX_HOME. Each may be used concurrently.

    Every call raises RequestNotWritten, AnswerLost or a Refusal.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def add(self, thread_id: str, key: str, text: str) -> wire.Added:
        """Add `text` to the thread's queue under `key`, in one write.

        Only RequestNotWritten and a Refusal that is `without_effect` prove that it was not added.
        """
        return await self._ask(wire.QUEUE_ADD, wire.add_params(thread_id, key, text), wire.added)

    async def queued(self, thread_id: str) -> list[wire.QueuedSubmission]:
        """What waits in the thread's queue, next to run first: at most 100, which is all it can hold."""
        return await self._ask(wire.QUEUE_LIST, wire.queue_list_params(thread_id), wire.queued_submissions)

    async def probe(self, thread_id: str) -> int:
        """How many messages wait in the thread's queue; a Refusal if it can't be given any."""
        return len(await self.queued(thread_id))

    async def history(self, thread_id: str, since_ms: int) -> History:
        """The thread's user messages since `since_ms` (wall clock).

        A message leaves the queue before it appears here, so look in the queue first and after. A user who
        goes back in the conversation takes messages out again.
        """
        try:
            return await self._pages(wire.ITEMS_LIST, wire.items_list_params, wire.items_page, thread_id, since_ms)
        except HistoryNotPaged:
            return await self._pages(wire.TURNS_LIST, wire.turns_list_params, wire.turns_page, thread_id, since_ms)

    async def _pages(
        self,
        method: str,
        params: Callable[[str, str | None], Mapping[str, Any]],
        parse: Callable[[object], wire.Page],
        thread_id: str,
        since_ms: int,
    ) -> History:
        messages: list[wire.UserMessage] = []
        cursor: str | None = None
        for _ in range(HISTORY_PAGES_MAX):
            page = await self._ask(method, params(thread_id, cursor), parse)
            messages += page.user_messages
            past = page.oldest_ms is not None and page.oldest_ms < since_ms - CLOCK_SET_BACK_MS_MAX
            cursor = page.next_cursor
            if past or cursor is None:
                return History(tuple(messages), complete=True)
        return History(tuple(messages), complete=False)

    async def _ask(self, method: str, params: Mapping[str, Any], parse: Callable[[object], _Shape]) -> _Shape:
        try:
            result = await self._peer.request(method, params, within_s=ANSWER_S_MAX)
        except ErrorAnswer as answer:
            raise classify(answer) from answer
        try:
            return parse(result)
        except wire.UnexpectedShape as error:
            raise AnswerNotUnderstood(f"{method} was answered in an unknown shape: {error}") from error


def late_add(method: str, params: Mapping[str, Any], outcome: "object | ErrorAnswer") -> LateAdd | None:
    """What a late answer says of an add; None where it says nothing of one."""
    if method != wire.QUEUE_ADD:
        return None
    thread_id, key = params["threadId"], params["clientUserMessageId"]
    if isinstance(outcome, ErrorAnswer):
        return LateAdd(thread_id, key, added=None, refusal=classify(outcome))
    try:
        return LateAdd(thread_id, key, added=wire.added(outcome), refusal=None)
    except wire.UnexpectedShape:
        return None
