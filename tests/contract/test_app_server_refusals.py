"""The words in which an app-server refuses, as one table: the real Codex 0.171.0 and the fake say the same.

A client tells from code and text together whether a refused add left a row. Every rule here is Codex's.
"""

from typing import Any

import pytest

from tests.contract.app_server_client import text
from tests.contract.app_servers import AppServers

pytestmark = pytest.mark.timeout(90)

UNKNOWN = "00000000-0000-7000-8000-000000000000"
NO_ROLLOUT = f"no rollout found for thread id {UNKNOWN}"
UNREADABLE = f"failed to read thread: invalid thread-store request: {NO_ROLLOUT}"
NOT_A_UUID = "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `x` at 1"
INPUT_TYPES = "`text`, `image`, `localImage`, `audio`, `localAudio`, `skill`, `mention`"
ADD, LIST = "thread/queue/add", "thread/queue/list"
ITEMS, TURNS = "thread/items/list", "thread/turns/list"

THREAD = "the id of a thread that is on disk and loaded nowhere"  # replaced in the params


def adding(**changed: Any) -> dict[str, Any]:
    """The params of a good add, with these changes; a change to Ellipsis leaves the field out."""
    params = {"threadId": THREAD, "clientUserMessageId": "k", "input": text("x"), **changed}
    return {name: value for name, value in params.items() if value is not ...}


REFUSED_BY_THE_PARSER: list[tuple[str, Any, str]] = [
    (ADD, None, "missing field `params`"),
    (LIST, None, "missing field `params`"),
    (ADD, {}, "missing field `threadId`"),
    (ADD, adding(threadId=...), "missing field `threadId`"),
    (ADD, adding(clientUserMessageId=...), "missing field `clientUserMessageId`"),
    (ADD, adding(input=...), "missing field `input`"),
    (ADD, adding(threadId=5), "invalid type: integer `5`, expected a string"),
    (ADD, adding(threadId=None), "invalid type: null, expected a string"),
    (ADD, adding(clientUserMessageId=None), "invalid type: null, expected a string"),
    (ADD, adding(clientUserMessageId=True), "invalid type: boolean `true`, expected a string"),
    (ADD, adding(clientUserMessageId=1.5), "invalid type: floating point `1.5`, expected a string"),
    (ADD, adding(clientUserMessageId=[1]), "invalid type: sequence, expected a string"),
    (ADD, adding(clientUserMessageId={"a": 1}), "invalid type: map, expected a string"),
    (ADD, adding(input="x"), 'invalid type: string "x", expected a sequence'),
    (ADD, adding(input=None), "invalid type: null, expected a sequence"),
    (ADD, adding(input={}), "invalid type: map, expected a sequence"),
    (ADD, adding(input=["x"]), 'invalid type: string "x", expected internally tagged enum UserInput'),
    (ADD, adding(input=[{}]), "missing field `type`"),
    (ADD, adding(input=[{"type": "bogus"}]), f"unknown variant `bogus`, expected one of {INPUT_TYPES}"),
    (ADD, adding(input=[{"type": "text"}]), "missing field `text`"),
    (ADD, adding(input=[{"type": "text", "text": 5}]), "invalid type: integer `5`, expected a string"),
    (LIST, {"threadId": THREAD, "limit": -1}, "invalid value: integer `-1`, expected u32"),
    (LIST, {"threadId": THREAD, "limit": "x"}, 'invalid type: string "x", expected u32'),
    (LIST, {"threadId": THREAD, "limit": 1.5}, "invalid type: floating point `1.5`, expected u32"),
    (LIST, {"threadId": THREAD, "cursor": 5}, "invalid type: integer `5`, expected a string"),
    (ITEMS, {"threadId": THREAD, "sortDirection": "up"}, "unknown variant `up`, expected `asc` or `desc`"),
    (
        TURNS,
        {"threadId": THREAD, "itemsView": "none"},
        "unknown variant `none`, expected one of `notLoaded`, `summary`, `full`",
    ),
    (
        "thread/read",
        {"threadId": THREAD, "includeTurns": "x"},
        'invalid type: string "x", expected a boolean',
    ),
    ("turn/interrupt", {"threadId": THREAD}, "missing field `turnId`"),
]
REFUSED: list[tuple[str, Any, int, str]] = [
    *((method, params, -32600, f"Invalid request: {why}") for method, params, why in REFUSED_BY_THE_PARSER),
    (ADD, adding(threadId="x"), -32600, f"invalid thread id: {NOT_A_UUID}"),
    (LIST, {"threadId": "x", "cursor": "zzz"}, -32600, f"invalid thread id: {NOT_A_UUID}"),
    (ITEMS, {"threadId": "x"}, -32600, f"invalid thread id: {NOT_A_UUID}"),
    (TURNS, {"threadId": "x"}, -32600, f"invalid thread id: {NOT_A_UUID}"),
    ("turn/start", {"threadId": "x", "input": []}, -32600, f"invalid thread id: {NOT_A_UUID}"),
    ("thread/resume", {"threadId": "x"}, -32600, f"invalid session id: {NOT_A_UUID}"),
    (
        ADD,
        adding(threadId=""),
        -32600,
        "invalid thread id: invalid length: expected length 32 for simple format, found 0",
    ),
    (
        ADD,
        adding(threadId=UNKNOWN + "a"),
        -32600,
        "invalid thread id: invalid group length in group 4: expected 12, found 13",
    ),
    (ADD, adding(threadId=UNKNOWN), -32603, UNREADABLE),
    (ADD, adding(threadId=UNKNOWN, input=[]), -32603, UNREADABLE),
    (LIST, {"threadId": UNKNOWN, "cursor": "zzz"}, -32603, UNREADABLE),
    ("thread/queue/start", {"threadId": UNKNOWN}, -32603, UNREADABLE),
    (TURNS, {"threadId": UNKNOWN}, -32600, f"thread not loaded: {UNKNOWN}"),
    ("thread/read", {"threadId": UNKNOWN}, -32600, f"thread not loaded: {UNKNOWN}"),
    (ITEMS, {"threadId": UNKNOWN, "cursor": "zzz"}, -32601, "thread/items/list is not supported yet"),
    ("thread/resume", {"threadId": UNKNOWN}, -32600, NO_ROLLOUT),
    ("thread/archive", {"threadId": UNKNOWN}, -32600, NO_ROLLOUT),
    ("turn/start", {"threadId": UNKNOWN, "input": text("x")}, -32600, f"thread not found: {UNKNOWN}"),
    (ADD, adding(input=[]), -32600, "only user input can be added to the user-message queue"),
    (
        LIST,
        {"threadId": THREAD, "cursor": "-1"},
        -32600,
        "invalid queue pagination cursor: invalid digit found in string",
    ),
    (
        LIST,
        {"threadId": THREAD, "cursor": ""},
        -32600,
        "invalid queue pagination cursor: cannot parse integer from empty string",
    ),
    (ITEMS, {"threadId": THREAD, "cursor": "zzz"}, -32600, "invalid cursor: zzz"),
    (TURNS, {"threadId": THREAD, "cursor": ""}, -32600, "invalid cursor: "),
    (
        "thread/queue/update",
        {"threadId": THREAD, "queuedSubmissionId": "nope", "input": text("x")},
        -32600,
        "queued submission not found: nope",
    ),
]


async def test_every_refusal_has_these_words_and_leaves_no_row(servers: AppServers):
    thread = await servers.thread()
    otherwise = []
    async with servers.client() as client:
        for method, params, code, message in REFUSED:
            given = {**params, "threadId": thread} if params and params.get("threadId") is THREAD else params
            said = await client.error(method, given)
            if said != (code, message):
                otherwise.append((method, params, said))
        assert otherwise == []
        assert await client.queued(thread) == []


async def test_a_method_that_the_server_never_heard_of_is_an_invalid_request_that_names_all_others(
    servers: AppServers,
):
    """It is not -32601, and several kilobytes long."""
    async with servers.client() as client:
        code, message = await client.error("bogus/method", {})
    assert code == -32600
    assert message.startswith(
        "Invalid request: unknown variant `bogus/method`, expected one of `initialize`, `server/diagnostics`, "
    )
    assert "`thread/queue/add`, `thread/queue/list`, `thread/queue/update`" in message
    assert len(message) == 4574
