"""A Codex thread as a receiver: one add, at most once, under a key; then only looking."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256

from channel.clock import Clock
from channel.delivery_states import Event, Policy, State
from channel.messages import HandOver, OpenDelivery, Outcome, PendingDelivery, key_of
from harness_adapters.codex import refusals
from harness_adapters.codex.app_server import AppServer, open_app_server
from harness_adapters.codex.envelope import envelope
from harness_adapters.codex.evidence import gather
from harness_adapters.codex.jsonrpc_peer import AnswerLost, PeerError, RequestNotWritten
from harness_adapters.codex.refusals import Refusal
from harness_adapters.codex.thread_queue import LateAdd
from harness_adapters.codex.threads import Thread
from harness_adapters.codex.transport import TransportUnavailable
from waiters import status
from waiters.receiver import NotNow, Unavailable, Waiter

CLOSES_AFTER_S = 60.0
"""An app-server child costs 13 MB while it runs and 70 ms to start again."""

QUEUE_ROWS_MAX = 100
"""Codex takes no more (measured with 0.148.0 to 0.171.0)."""

_WORDS: dict[type[Refusal], str] = {
    refusals.QueueApiUnsupported: status.QUEUE_API_UNSUPPORTED,
    refusals.UnknownThread: status.THREAD_UNKNOWN,
    refusals.ThreadArchived: status.THREAD_ARCHIVED,
    refusals.SubAgentThread: status.THREAD_OF_SUB_AGENT,
    refusals.QueueFull: status.QUEUE_FULL,
}


class CodexReceiver:
    """One thread. `channel_id` is part of every key."""

    policy = Policy.QUEUE
    closes_after_s: float | None = CLOSES_AFTER_S

    def __init__(self, thread: Thread, channel_id: str, clock: Clock) -> None:
        self._thread = thread
        self._channel_id = channel_id
        self._clock = clock

    @asynccontextmanager
    async def open(self, waiter: Waiter) -> AsyncIterator["OpenThread"]:
        late: deque[LateAdd] = deque()

        def on_late_add(add: LateAdd) -> None:
            late.append(add)
            waiter.wake()

        try:
            async with open_app_server(self._thread.openers(), on_late_add) as server:
                yield OpenThread(self._thread, server, self._key_of, waiter, self._clock, late)
        except TransportUnavailable as error:
            raise Unavailable(f"{status.APP_SERVER_UNAVAILABLE}: {error}") from error

    def _key_of(self, message_id: int) -> str:
        return key_of(self._channel_id, message_id)


class OpenThread:
    """An initialized app-server, for one thread."""

    def __init__(
        self,
        thread: Thread,
        server: AppServer,
        key_of_message: Callable[[int], str],
        waiter: Waiter,
        clock: Clock,
        late: deque[LateAdd],
    ) -> None:
        self._thread = thread
        self._server = server
        self._key_of = key_of_message
        self._waiter = waiter
        self._clock = clock
        self._late = late
        self._prepared: dict[int, tuple[str, str]] = {}
        self._delivery_of_key: dict[str, int] = {}
        self._must_probe = True

    @property
    def remark(self) -> str:
        """Where the thread's owner and the app-server that adds have other versions."""
        owner, server = self._thread.version_of_owner(), self._server.codex_version
        if not owner or not server or owner == server:
            return ""
        return f"{status.VERSIONS_DIFFER}: the thread runs in Codex {owner}, messages are added by {server}"

    async def ready(self) -> None:
        """The thread can be given a message now; asked of the server at first, and after each refusal."""
        if self._server.closed:
            raise Unavailable(f"{status.APP_SERVER_UNAVAILABLE}: it has ended")
        if self._thread.is_owned_by_exec():
            raise NotNow(
                f"{status.OWNED_BY_EXEC}: it would take a message at its exit without showing it to its model; "
                "delivered once it has ended"
            )
        if not self._must_probe:
            return
        try:
            waiting = await self._server.queue.probe(self._thread.thread_id)
        except Refusal as refusal:
            raise _not_now(refusal) from refusal
        except PeerError as error:
            raise Unavailable(f"{status.APP_SERVER_UNAVAILABLE}: {error}") from error
        if waiting >= QUEUE_ROWS_MAX:
            raise NotNow(f"{status.QUEUE_FULL}: {waiting} messages wait in the thread")
        self._must_probe = False

    def prepare(self, pending: Sequence[PendingDelivery]) -> list[HandOver]:
        """One at a time: an add that is refused must not be overtaken by the next."""
        first = pending[0]
        text = envelope(first.message, self._clock.now_ms())
        self._prepared = {first.delivery_id: (self._key_of(first.message.message_id), text)}
        return [HandOver(first.delivery_id, text_sha256=sha256(text.encode()).hexdigest())]

    async def hand_over(self, delivery_ids: Collection[int]) -> None:
        for delivery_id in delivery_ids:
            key, text = self._prepared.pop(delivery_id)
            self._delivery_of_key[key] = delivery_id
            await self._add(delivery_id, key, text)

    async def look_for(self, open_deliveries: Sequence[OpenDelivery]) -> list[Outcome]:
        # What was withdrawn is found if it is among what is read anyway: it makes no look longer.
        since_ms = min(each.handed_over_at_ms for each in open_deliveries if each.state is not State.WITHDRAWN)
        try:
            evidence = await gather(self._server.queue, self._thread.thread_id, since_ms)
        except Refusal as refusal:
            raise _not_now(refusal) from refusal
        except PeerError as error:
            raise Unavailable(f"{status.APP_SERVER_UNAVAILABLE}: {error}") from error
        outcomes = (evidence.of(delivery, self._key_of(delivery.message_id)) for delivery in open_deliveries)
        return [outcome for outcome in outcomes if outcome is not None]

    def late_outcomes(self) -> list[Outcome]:
        outcomes = []
        while self._late:
            late = self._late.popleft()
            delivery_id = self._delivery_of_key.pop(late.key, None)
            if delivery_id is None:
                continue
            if late.added is not None:
                outcomes.append(Outcome(delivery_id, Event.ANSWERED, "answered late", late.added.submission_id))
            elif late.refusal is not None and late.refusal.without_effect:
                outcomes.append(Outcome(delivery_id, Event.REFUSED_WITHOUT_EFFECT, str(late.refusal)))
        return outcomes

    async def _add(self, delivery_id: int, key: str, text: str) -> None:
        """The only add of this delivery, ever: it is recorded as handed over, and no path leads back here."""
        try:
            added = await self._server.queue.add(self._thread.thread_id, key, text)
        except RequestNotWritten as error:
            why = f"{status.APP_SERVER_UNAVAILABLE}: {error}"
            await self._waiter.record(Outcome(delivery_id, Event.NOT_WRITTEN, why))
            raise Unavailable(why) from error
        except AnswerLost as error:
            await self._waiter.record(Outcome(delivery_id, Event.ANSWER_LOST, str(error)))
            if self._server.closed:
                raise Unavailable(f"{status.APP_SERVER_UNAVAILABLE}: {error}") from error
        except Refusal as refusal:
            self._must_probe = True
            event = Event.REFUSED_WITHOUT_EFFECT if refusal.without_effect else Event.ANSWER_LOST
            await self._waiter.record(Outcome(delivery_id, event, _not_now(refusal).detail))
        else:
            await self._waiter.record(Outcome(delivery_id, Event.ANSWERED, "", added.submission_id))


def _not_now(refusal: Refusal) -> NotNow:
    for kind, word in _WORDS.items():
        if isinstance(refusal, kind):
            return NotNow(f"{word}: {refusal}" if not str(refusal).startswith(word) else str(refusal))
    return NotNow(f"{status.APP_SERVER_UNAVAILABLE}: {refusal}")
