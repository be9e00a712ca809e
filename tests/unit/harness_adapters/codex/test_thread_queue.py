"""The typed calls: what is asked, what is read of the answers, and when a look into the history is whole."""

import json
from typing import Any

import pytest

from harness_adapters.codex import thread_queue
from harness_adapters.codex.jsonrpc_peer import AnswerLost, AnswerNotUnderstood, ErrorAnswer
from harness_adapters.codex.refusals import QueueFull, UnclassifiedRefusal, UnknownThread
from harness_adapters.codex.thread_queue import (
    CLOCK_SET_BACK_MS_MAX,
    History,
    LateAdd,
    late_add,
)
from harness_adapters.codex.wire import Added, QueuedSubmission, UserMessage
from tests.unit.harness_adapters.codex.conversation import (
    NOT_SUPPORTED,
    NOW_MS,
    THREAD,
    Conversation,
    items,
    row,
    text_part,
    user_item,
)


async def test_add_sends_the_text_as_one_part_under_its_key_and_returns_the_rows_id(
    talk: Conversation,
) -> None:
    text = "line\r\n\x00 \u2028 trailing  "
    answer = {"queuedSubmission": row(1, "k", [text_part(text)])}
    assert await talk.of(lambda: talk.queue.add(THREAD, "k", text), answer) == Added("row-1")
    assert talk.asked == [
        (
            "thread/queue/add",
            {"threadId": THREAD, "clientUserMessageId": "k", "input": [text_part(text)]},
        )
    ]


@pytest.mark.fault("F25")
@pytest.mark.parametrize("answer", [None, [], "ok", {}, {"queuedSubmission": {}}, {"queuedSubmission": []}])
async def test_an_add_answered_without_a_row_id_proves_nothing(talk: Conversation, answer: object) -> None:
    """It is a kind of lost answer: looked for, never added again."""
    with pytest.raises(AnswerNotUnderstood, match="thread/queue/add was answered in an unknown shape") as caught:
        await talk.of(lambda: talk.queue.add(THREAD, "k", "text"), answer)
    assert isinstance(caught.value, AnswerLost)


async def test_a_refused_add_is_raised_as_its_class(talk: Conversation) -> None:
    full = (-32600, "queue cannot contain more than 100 submissions")
    with pytest.raises(QueueFull):
        await talk.of(lambda: talk.queue.add(THREAD, "k", "text"), full)
    with pytest.raises(UnclassifiedRefusal):
        await talk.of(lambda: talk.queue.add(THREAD, "k", "text"), (-32603, "database is locked"))


async def test_the_queue_is_asked_for_in_one_page_and_its_rows_come_in_order(talk: Conversation) -> None:
    answer = {
        "data": [row(1, "k1", [text_part("one")]), row(2, None, [text_part("typed")])],
        "nextCursor": "100",
    }
    assert await talk.of(lambda: talk.queue.queued(THREAD), answer) == [
        QueuedSubmission("row-1", "k1", "one"),
        QueuedSubmission("row-2", None, "typed"),
    ]
    assert talk.asked == [("thread/queue/list", {"threadId": THREAD, "limit": 100})]


@pytest.mark.parametrize(
    "parts",
    [
        None,
        [],
        [text_part("a"), text_part("b")],
        [{"type": "image", "url": "x"}],
        [{"type": "image", "text": "a"}],
        [{"type": "text"}],
        ["a"],
    ],
)
async def test_an_input_that_is_not_exactly_one_text_equals_no_text(talk: Conversation, parts: object) -> None:
    (found,) = await talk.of(lambda: talk.queue.queued(THREAD), {"data": [row(1, "k", parts)]})
    assert found == QueuedSubmission("row-1", "k", None)


async def test_a_probe_counts_the_waiting_rows_or_says_why_there_can_be_none(talk: Conversation) -> None:
    assert await talk.of(lambda: talk.queue.probe(THREAD), {"data": [row(1), row(2)]}) == 2
    no_rollout = "failed to read thread: invalid thread-store request: no rollout found for thread id x"
    with pytest.raises(UnknownThread):
        await talk.of(lambda: talk.queue.probe(THREAD), (-32603, no_rollout))


async def test_the_history_is_read_newest_first_and_only_user_messages_are_kept(talk: Conversation) -> None:
    page = items(
        {"type": "agentMessage", "id": "msg", "text": "reply", "startedAtMs": NOW_MS},
        user_item("k", "queued"),
        user_item(None, "typed", None),
        {"type": "somethingNew"},
    )
    assert await talk.of(lambda: talk.queue.history(THREAD, NOW_MS), page) == History(
        (UserMessage("k", "queued", "turn", NOW_MS), UserMessage(None, "typed", "turn", None)), complete=True
    )
    assert talk.asked == [("thread/items/list", {"threadId": THREAD, "limit": 100, "sortDirection": "desc"})]


async def test_pages_are_followed_until_an_item_is_older_than_asked_for(talk: Conversation) -> None:
    """Older by more than a wall clock may have been set back since."""
    old = NOW_MS - CLOCK_SET_BACK_MS_MAX
    found = await talk.of(
        lambda: talk.queue.history(THREAD, NOW_MS),
        items(user_item("k3", ""), next_cursor="c1"),
        items(user_item("k2", "", old), next_cursor="c2"),
        items({"type": "agentMessage", "startedAtMs": old - 1}, next_cursor="c3"),
    )
    assert [message.key for message in found.user_messages] == ["k3", "k2"]
    assert found.complete
    assert [params.get("cursor") for _, params in talk.asked] == [None, "c1", "c2"]


async def test_the_time_that_stands_beside_an_item_counts_where_it_has_none(talk: Conversation) -> None:
    page = items(user_item("k", "", None), next_cursor="c1")
    page["data"][0]["startedAtMs"] = 1
    found = await talk.of(lambda: talk.queue.history(THREAD, NOW_MS), page)
    assert found == History((UserMessage("k", "", "turn", 1),), complete=True)


async def test_a_history_cut_off_at_the_page_limit_says_that_it_is_not_whole(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_queue, "HISTORY_PAGES_MAX", 3)
    pages = [items(user_item(f"k{n}", ""), next_cursor="more") for n in range(3)]
    found = await talk.of(lambda: talk.queue.history(THREAD, 0), *pages)
    assert len(found.user_messages) == 3
    assert not found.complete


async def test_a_thread_with_the_old_kind_of_history_is_read_by_its_turns(talk: Conversation) -> None:
    def turn(name: str, *of_turn: dict[str, Any]) -> dict[str, Any]:
        return {"id": name, "items": list(of_turn), "itemsView": "full", "startedAt": 1}

    found = await talk.of(
        lambda: talk.queue.history(THREAD, 0),
        NOT_SUPPORTED,
        {"data": [turn("t2", user_item("k3", "3"), user_item("k4", "4"))], "nextCursor": "c1"},
        {"data": [turn("t1", user_item("k1", "1")), turn("t0")], "nextCursor": None},
    )
    assert [(message.key, message.turn_id) for message in found.user_messages] == [
        ("k4", "t2"),
        ("k3", "t2"),
        ("k1", "t1"),
    ]
    turns = {"threadId": THREAD, "limit": 100, "itemsView": "full"}
    assert talk.asked[1:] == [
        ("thread/turns/list", turns),
        ("thread/turns/list", {**turns, "cursor": "c1"}),
    ]


async def test_a_thread_that_neither_list_knows_is_unknown(talk: Conversation) -> None:
    """-32601 is also what an unknown thread's items answer."""
    with pytest.raises(UnknownThread):
        await talk.of(lambda: talk.queue.history(THREAD, 0), NOT_SUPPORTED, (-32600, f"thread not loaded: {THREAD}"))


@pytest.mark.fault("F25")
@pytest.mark.parametrize("answer", [None, {}, {"data": None}, {"data": [1]}, {"data": [{"item": None}]}])
async def test_a_history_in_another_shape_is_no_absence(talk: Conversation, answer: object) -> None:
    with pytest.raises(AnswerNotUnderstood):
        await talk.of(lambda: talk.queue.history(THREAD, 0), answer)


ADD_PARAMS = {"threadId": THREAD, "clientUserMessageId": "k", "input": []}


def test_a_late_answer_to_an_add_is_told_as_what_it_is() -> None:
    answered = late_add("thread/queue/add", ADD_PARAMS, {"queuedSubmission": row(1)})
    assert answered == LateAdd(THREAD, "k", Added("row-1"), None)
    refused = late_add("thread/queue/add", ADD_PARAMS, ErrorAnswer(-32603, "locked"))
    assert refused is not None
    assert (refused.key, refused.added) == ("k", None)
    assert isinstance(refused.refusal, UnclassifiedRefusal)


def test_other_late_answers_say_nothing_of_an_add() -> None:
    assert late_add("thread/queue/list", {"threadId": THREAD}, {"data": []}) is None
    assert late_add("thread/queue/add", ADD_PARAMS, json.loads("{}")) is None
