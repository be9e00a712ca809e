"""What one look says of a delivery: the queue, the items, the queue again, and when absence counts."""

from hashlib import sha256

import pytest

from channel.delivery_states import Event, State
from channel.messages import OpenDelivery
from harness_adapters.codex import thread_queue
from harness_adapters.codex.evidence import Evidence, gather
from tests.unit.harness_adapters.codex.conversation import (
    NOW_MS,
    THREAD,
    Conversation,
    items,
    row,
    text_part,
    user_item,
)

KEY, TEXT = "agent-channel:c:1", "the text"
NO_ROWS = {"data": [], "nextCursor": None}
ONE_ROW = {"data": [row(1, KEY, [text_part(TEXT)])], "nextCursor": None}
ARCHIVED = (-32600, f"session {THREAD} is archived. Run `codex unarchive {THREAD}` to unarchive it first.")


async def look(talk: Conversation, *answers: object) -> Event | None:
    """What a look that the server answers so says of the delivery of TEXT under KEY."""
    evidence: Evidence = await talk.of(lambda: gather(talk.queue, THREAD, NOW_MS), *answers)
    digest = sha256(TEXT.encode()).hexdigest()
    outcome = evidence.of(OpenDelivery(7, 1, State.UNCERTAIN, digest, "", NOW_MS, False, False, False, None), KEY)
    return None if outcome is None else outcome.event


async def test_the_queue_is_read_then_the_items_then_the_queue_again(talk: Conversation) -> None:
    """Codex's: a row leaves the queue before its item is there."""
    assert await look(talk, NO_ROWS, items(), NO_ROWS) is Event.KEY_IN_NEITHER
    assert [method for method, _ in talk.asked] == ["thread/queue/list", "thread/items/list", "thread/queue/list"]


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ((ONE_ROW, items(), NO_ROWS), Event.KEY_IN_QUEUE),
        ((NO_ROWS, items(), ONE_ROW), Event.KEY_IN_QUEUE),  # an add whose answer was lost comes into effect late
        ((NO_ROWS, items(user_item(KEY, TEXT)), NO_ROWS), Event.KEY_IN_ITEMS),
        ((ONE_ROW, items(user_item(KEY, TEXT)), NO_ROWS), Event.KEY_IN_ITEMS),  # consumed between the two
        ((NO_ROWS, items(user_item(KEY, "other")), NO_ROWS), Event.KEY_WITH_OTHER_TEXT),
        (({"data": [row(1, KEY, [text_part("other")])]}, items(), NO_ROWS), Event.KEY_WITH_OTHER_TEXT),
        ((NO_ROWS, items(user_item("another", TEXT)), NO_ROWS), Event.KEY_IN_NEITHER),
    ],
)
async def test_a_key_counts_wherever_it_is_met(talk: Conversation, answers: tuple[object, ...], found: Event) -> None:
    assert await look(talk, *answers) is found


async def test_the_queue_of_an_archived_thread_can_not_be_read_so_absence_says_nothing(talk: Conversation) -> None:
    assert await look(talk, ARCHIVED, items(), ARCHIVED) is None
    assert await look(talk, ARCHIVED, items(user_item(KEY, TEXT)), ARCHIVED) is Event.KEY_IN_ITEMS


async def test_absence_from_a_history_that_was_not_read_to_its_end_says_nothing(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_queue, "HISTORY_PAGES_MAX", 1)
    assert await look(talk, NO_ROWS, items(user_item("another", ""), next_cursor="more"), NO_ROWS) is None
