"""Planted bugs: each takes one rule out of the product that its promises rest on.

A mutation is a context manager: while its body runs, the product has the bug.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from channel import deliveries as deliveries_module
from channel.deliveries import Deliveries
from channel.delivery_states import Event
from channel.leases import Lease, Leases
from channel.messages import OpenDelivery, Outcome, PendingDelivery
from channel.queries import sql
from harness_adapters.claude.receiver import OpenMonitor
from harness_adapters.codex import receiver as codex_receiver
from harness_adapters.codex.evidence import Evidence
from harness_adapters.codex.jsonrpc_peer import AnswerLost
from harness_adapters.codex.receiver import OpenThread
from harness_adapters.codex.thread_queue import ThreadQueue
from harness_adapters.codex.wire import Added
from waiters import reconciliation
from waiters.delivery_loop import DeliveryLoop
from waiters.receiver import OpenReceiver

Mutation = Callable[[], AbstractContextManager[object]]


def acknowledge_before_the_write() -> AbstractContextManager[object]:
    """`accepted` is recorded, and then the text is given."""
    hand_over = OpenThread.hand_over

    async def mutated(self: OpenThread, delivery_ids: Collection[int]) -> None:
        await self._waiter.record(*(Outcome(delivery_id, Event.ANSWERED) for delivery_id in delivery_ids))
        await hand_over(self, delivery_ids)

    return patch.object(OpenThread, "hand_over", mutated)


def acknowledge_before_the_print() -> AbstractContextManager[object]:
    """The same of a Monitor."""
    hand_over = OpenMonitor.hand_over

    async def mutated(self: OpenMonitor, delivery_ids: Collection[int]) -> None:
        await self._waiter.record(*(Outcome(delivery_id, Event.TAKEN) for delivery_id in delivery_ids))
        await hand_over(self, delivery_ids)

    return patch.object(OpenMonitor, "hand_over", mutated)


def hand_over_after_the_write() -> AbstractContextManager[object]:
    """The text is given, and then the hand-over is recorded."""

    async def mutated(self: DeliveryLoop, opened: OpenReceiver) -> bool:
        pending = [] if self._is_resting() else await self._deliveries.next_pending(self.lease.address)
        if not pending or not await self._ask_whether_ready(opened):
            return False
        prepared = opened.prepare(pending)
        self.record, outcomes = _keep_for_later()  # type: ignore[method-assign, assignment]
        try:
            await opened.hand_over([each.delivery_id for each in prepared])
        finally:
            del self.record
        await self._deliveries.record_hand_over(self.lease, self._receiver.policy, prepared)
        await self.record(*outcomes)
        return True

    return patch.object(DeliveryLoop, "_deliver", mutated)


def add_again_after_a_lost_answer() -> AbstractContextManager[object]:
    """No answer within the time, or the connection lost: the add is repeated."""
    add = ThreadQueue.add

    async def mutated(self: ThreadQueue, thread_id: str, key: str, text: str) -> Added:
        try:
            return await add(self, thread_id, key, text)
        except AnswerLost:
            return await add(self, thread_id, key, text)

    return patch.object(ThreadQueue, "add", mutated)


@contextmanager
def lease_without_its_term() -> Iterator[None]:
    """Whoever was a waiter once may hand over."""

    async def check(self: Leases, lease: Lease) -> None:
        """Nothing is asked."""

    def mutated(name: str) -> str:
        text = sql(name)
        if name == "record_hand_over":
            text = text.replace(" AND w.term = :term AND w.process = :process\n    AND w.released_at_ms IS NULL", "")
            assert text != sql(name)
        return text

    with patch.object(deliveries_module, "sql", mutated), patch.object(Leases, "check", check):
        yield


def items_before_the_queue() -> AbstractContextManager[object]:
    """A look reads the items and then the queue, once."""

    async def mutated(queue: ThreadQueue, thread_id: str, since_ms: int) -> Evidence:
        history = await queue.history(thread_id, since_ms)
        return Evidence(await queue.queued(thread_id), True, history)

    return patch.object(codex_receiver, "gather", mutated)


def newest_first() -> AbstractContextManager[object]:
    """What waits is handed over in the wrong order."""
    next_pending = Deliveries.next_pending

    async def mutated(self: Deliveries, address: str) -> list[PendingDelivery]:
        return (await next_pending(self, address))[::-1]

    return patch.object(Deliveries, "next_pending", mutated)


def seen_in_the_queue() -> AbstractContextManager[object]:
    """A key in the queue is taken for one among the items."""
    of = Evidence.of

    def mutated(self: Evidence, delivery: OpenDelivery, key: str) -> Outcome | None:
        outcome = of(self, delivery, key)
        is_queued = outcome is not None and outcome.event is Event.KEY_IN_QUEUE
        return Outcome(delivery.delivery_id, Event.KEY_IN_ITEMS) if is_queued else outcome

    return patch.object(Evidence, "of", mutated)


def never_looks_again() -> AbstractContextManager[object]:
    """What is not settled by its answer is forgotten."""
    return patch.object(reconciliation, "is_due", lambda *_: False)


MUTATIONS: Sequence[Mutation] = (
    acknowledge_before_the_write,
    acknowledge_before_the_print,
    hand_over_after_the_write,
    add_again_after_a_lost_answer,
    lease_without_its_term,
    items_before_the_queue,
    newest_first,
    seen_in_the_queue,
    never_looks_again,
)
"""The first five rules are those that the promise "nothing lost, nothing twice" stands on; the others show that the
rest of the checks can fail."""


def _keep_for_later() -> tuple[Callable[..., object], list[Outcome]]:
    kept: list[Outcome] = []

    async def record(*outcomes: Outcome) -> None:
        kept.extend(outcomes)

    return record, kept
