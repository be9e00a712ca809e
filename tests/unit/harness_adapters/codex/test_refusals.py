"""The classification table, against the exact texts that Codex 0.120.0 and 0.171.0 gave."""

import pytest

from harness_adapters.codex.jsonrpc_peer import ErrorAnswer
from harness_adapters.codex.refusals import (
    SHOWN_CHARACTERS_MAX,
    HistoryNotPaged,
    MalformedRequest,
    QueueApiUnsupported,
    QueueFull,
    Refusal,
    SubAgentThread,
    TextTooLarge,
    ThreadArchived,
    UnclassifiedRefusal,
    UnknownThread,
    classify,
)

THREAD = "01a22c1e-42d9-7ab1-ac8d-cd31aca2b89b"
NO_ROLLOUT = f"failed to read thread: invalid thread-store request: no rollout found for thread id {THREAD}"
ARCHIVED = f"session {THREAD} is archived. Run `codex unarchive {THREAD}` to unarchive it first."
METHODS = ", ".join(f"`thread/method/{number}`" for number in range(200))

MEASURED: list[tuple[int, str, type[Refusal]]] = [
    (-32600, "thread/queue/add requires experimentalApi capability", QueueApiUnsupported),
    (-32600, "thread/queue/list requires experimentalApi capability", QueueApiUnsupported),
    (
        -32600,
        f"Invalid request: unknown variant `thread/queue/add`, expected one of `initialize`, {METHODS}",
        QueueApiUnsupported,
    ),
    (
        -32600,
        "Invalid request: unknown variant `thread/queue/list`, expected one of `initialize`",
        QueueApiUnsupported,
    ),
    (-32600, "Invalid request: missing field `clientUserMessageId`", MalformedRequest),
    (-32600, "Invalid request: missing field `params`", MalformedRequest),
    (-32600, "Invalid request: invalid type: null, expected a string", MalformedRequest),
    (
        -32600,
        "Invalid request: unknown variant `bogus`, expected one of `text`, `image`, `localImage`",
        MalformedRequest,
    ),
    (-32600, "Not initialized", MalformedRequest),
    (-32600, "Already initialized", MalformedRequest),
    (-32600, "only user input can be added to the user-message queue", MalformedRequest),
    (
        -32600,
        "invalid queue pagination cursor: invalid digit found in string",
        MalformedRequest,
    ),
    (-32600, "invalid cursor: zzz", MalformedRequest),
    (
        -32600,
        "invalid thread id: invalid character: expected an optional prefix of `urn:uuid:` followed by ...",
        UnknownThread,
    ),
    (-32603, NO_ROLLOUT, UnknownThread),
    (-32600, f"thread not loaded: {THREAD}", UnknownThread),
    (-32601, "thread/items/list is not supported yet", HistoryNotPaged),
    (-32600, ARCHIVED, ThreadArchived),
    (
        -32600,
        "direct app-server input is not allowed for unloaded spawned sub-agents",
        SubAgentThread,
    ),
    (-32600, "queue cannot contain more than 100 submissions", QueueFull),
    (-32602, "Input exceeds the maximum length of 1048576 characters.", TextTooLarge),
]

PROVES_NOTHING: list[tuple[int, str]] = [
    (-32603, "failed to write the queue: database is locked"),
    (-32603, "queue cannot contain more than 100 submissions"),
    (-32600, NO_ROLLOUT),
    (-32601, "Method not found"),
    (-32600, "queued submission not found: nope"),
    (-32600, "resume the thread before starting a queued message"),
    (-32600, f"thread not found: {THREAD}"),
    (-32600, f"thread {THREAD} already has an active writer"),
    (-32600, "a text that ends like one: queue cannot contain more than 100 submissions"),
    (-32000, "server overloaded"),
    (-32600, ""),
]


@pytest.mark.parametrize(("code", "message", "refusal"), MEASURED)
def test_each_measured_refusal_has_its_class_and_is_proof_of_no_effect(
    code: int, message: str, refusal: type[Refusal]
) -> None:
    found = classify(ErrorAnswer(code, message))
    assert type(found) is refusal
    assert found.without_effect


@pytest.mark.parametrize(("code", "message"), PROVES_NOTHING)
def test_every_other_answer_proves_nothing(code: int, message: str) -> None:
    """Also one with a known text under another code, and those of methods that are never sent."""
    found = classify(ErrorAnswer(code, message))
    assert type(found) is UnclassifiedRefusal
    assert not found.without_effect


@pytest.mark.parametrize("refusal", dict.fromkeys([*(refusal for _, _, refusal in MEASURED), UnclassifiedRefusal]))
def test_each_refusal_says_what_it_means_and_what_codex_said(refusal: type[Refusal]) -> None:
    text = str(refusal(ErrorAnswer(-32600, "the words")))
    assert text == f"{refusal.advice} Codex said (-32600): the words"
    assert len(refusal.advice) > 20


def test_a_long_text_of_the_server_is_shown_in_its_first_part() -> None:
    _, message, _ = MEASURED[2]
    found = classify(ErrorAnswer(-32600, message))
    assert len(message) > 4000
    assert found.server_text == message[:SHOWN_CHARACTERS_MAX] + "…"
    assert found.server_text in str(found)


def test_a_text_of_several_lines_is_shown_as_one() -> None:
    assert classify(ErrorAnswer(1, "a\n  b\x00\tc")).server_text == "a b\x00 c"


@pytest.mark.fault("F25")
def test_the_words_for_a_server_without_the_queue_are_those_of_the_waiters_detail() -> None:
    assert QueueApiUnsupported.advice.startswith("queue API unsupported")
