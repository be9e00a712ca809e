"""Where a Codex thread keeps a message, and what one look there says of a delivery. It only reads.

The look-up order is fixed: the queue, then the items, then the queue again. A row leaves the queue before
its item appears (by 18 to 65 ms, or as long as a hook runs: measured with 0.171.0), so the other order can
miss a key that is there all the time.
"""

from collections.abc import Sequence
from hashlib import sha256

from channel.delivery_states import Event
from channel.messages import OpenDelivery, Outcome
from harness_adapters.codex.refusals import ThreadArchived
from harness_adapters.codex.thread_queue import History, ThreadQueue
from harness_adapters.codex.wire import QueuedSubmission


class Evidence:
    """What one look found, asked delivery by delivery. Made by `gather`.

    `queue_was_read`: both times. `history`: what was read of the items; with both, absence counts.
    """

    def __init__(self, queued: Sequence[QueuedSubmission], queue_was_read: bool, history: History) -> None:
        self._rows = {row.key: row for row in queued}
        self._items = {item.key: item for item in history.user_messages}
        self.queue_was_read = queue_was_read
        self.history = history

    @property
    def rows(self) -> int:
        """How many rows wait in the queue."""
        return len(self._rows)

    def of(self, delivery: OpenDelivery, key: str) -> Outcome | None:
        """What the look says of a delivery; None where it says nothing."""
        item, row = self._items.get(key), self._rows.get(key)
        found = item or row
        if found is None:
            if not self.queue_was_read or not self.history.complete:
                return None
            return Outcome(delivery.delivery_id, Event.KEY_IN_NEITHER, "neither in the queue nor among the items")
        if found.text is None or sha256(found.text.encode()).hexdigest() != delivery.text_sha256:
            return Outcome(delivery.delivery_id, Event.KEY_WITH_OTHER_TEXT, "the key is held by another text")
        if item is not None:
            return Outcome(delivery.delivery_id, Event.KEY_IN_ITEMS)
        assert row is not None
        return Outcome(delivery.delivery_id, Event.KEY_IN_QUEUE, "waits in the thread's queue", row.submission_id)


async def gather(queue: ThreadQueue, thread_id: str, since_ms: int) -> Evidence:
    """Look once, among the items back to `since_ms`. Raises a Refusal or a PeerError."""
    before = await _queued(queue, thread_id)
    history = await queue.history(thread_id, since_ms)
    after = await _queued(queue, thread_id)
    queue_was_read = before is not None and after is not None
    return Evidence([*(before or ()), *(after or ())], queue_was_read, history)


async def _queued(queue: ThreadQueue, thread_id: str) -> list[QueuedSubmission] | None:
    """None for an archived thread: its queue can't be read, and is back when it is unarchived."""
    try:
        return await queue.queued(thread_id)
    except ThreadArchived:
        return None
