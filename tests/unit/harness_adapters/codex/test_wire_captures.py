"""The client's reading of what real app-servers wrote (tests/data/wire/codex, one exchange a line)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.codex import wire
from harness_adapters.codex.jsonrpc_peer import ErrorAnswer
from harness_adapters.codex.refusals import QueueApiUnsupported, classify

CAPTURES = Path(__file__).parents[3] / "data" / "wire" / "codex"
PARSERS: dict[str, Callable[[object], object]] = {
    wire.INITIALIZE: wire.codex_version,
    wire.QUEUE_ADD: wire.added,
    wire.QUEUE_LIST: wire.queued_submissions,
    wire.ITEMS_LIST: wire.items_page,
    wire.TURNS_LIST: wire.turns_page,
}


def exchanges() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(file, request, answer) of every request that a client sent and a server answered."""
    found = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        requests: dict[int, dict[str, Any]] = {}
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            message = entry["msg"]
            if not isinstance(message, dict):
                continue  # the end of the stream, or a line that was no JSON
            if entry["dir"] == ">" and "id" in message:
                requests[message["id"]] = message
            elif entry["dir"] == "<" and message.get("id") in requests:
                found.append((path.stem, requests[message["id"]], message))
    return found


@pytest.mark.parametrize("method", PARSERS)
def test_each_captured_result_of_a_method_that_is_sent_can_be_read(method: str) -> None:
    results = [a["result"] for _, r, a in exchanges() if r["method"] == method and "result" in a]
    assert results
    for result in results:
        PARSERS[method](result)


def test_a_captured_add_is_read_as_the_row_that_the_list_shows() -> None:
    basic = [(r, a) for name, r, a in exchanges() if name == "basic" and "result" in a]
    (sent, answer), *_ = [(r, a) for r, a in basic if r["method"] == wire.QUEUE_ADD]
    key, text = sent["params"]["clientUserMessageId"], sent["params"]["input"][0]["text"]
    histories = [wire.items_page(a["result"]) for r, a in basic if r["method"] == wire.ITEMS_LIST]
    assert wire.added(answer["result"]).submission_id
    assert (key, text) in [(m.key, m.text) for page in histories for m in page.user_messages]


def test_each_captured_error_says_that_the_queue_is_not_supported() -> None:
    """Of the captured servers only those without the API, or without its capability, answered errors."""
    errors = [ErrorAnswer(a["error"]["code"], a["error"]["message"]) for _, _, a in exchanges() if "error" in a]
    assert len(errors) == 8
    assert {type(classify(error)) for error in errors} == {QueueApiUnsupported}


def test_the_version_is_read_off_every_captured_server() -> None:
    answers = [(name, a["result"]) for name, r, a in exchanges() if r["method"] == wire.INITIALIZE]
    versions = {name: wire.codex_version(result) for name, result in answers}
    assert versions.pop("old-server-0.120") == "0.120.0"
    assert set(versions.values()) == {"0.171.0"}
