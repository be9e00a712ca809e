"""What the app-server's error answers mean: a table from code and beginning of the text to a class.

Neither decides alone: an unknown method answers -32600 like a full queue, and -32601 is what a thread with
the old kind of history answers (see `HistoryNotPaged`). The rows were measured with Codex 0.120.0 and 0.148.0
to 0.171.0; what each says of the effect was checked in the queue afterwards.

    Refusal
    ├── QueueApiUnsupported
    ├── UnknownThread
    ├── ThreadArchived
    ├── SubAgentThread
    ├── QueueFull
    ├── TextTooLarge
    ├── HistoryNotPaged
    ├── MalformedRequest
    └── UnclassifiedRefusal   proves nothing
"""

import re

from harness_adapters.codex.jsonrpc_peer import ErrorAnswer

SHOWN_CHARACTERS_MAX = 300
"""Shown of the server's text: the list of the methods it knows is 4.6 KB long."""


class Refusal(Exception):
    """The server said no. `without_effect` is True where that is proof that it did nothing."""

    without_effect = True
    advice = ""

    def __init__(self, answer: ErrorAnswer) -> None:
        self.code = answer.code
        text = " ".join(answer.message.split())
        if len(text) > SHOWN_CHARACTERS_MAX:
            text = text[:SHOWN_CHARACTERS_MAX] + "…"
        self.server_text = text
        super().__init__(f"{self.advice} Codex said ({self.code}): {text}")


class QueueApiUnsupported(Refusal):
    """This Codex can't be given messages; nothing will change that but another version."""

    advice = "queue API unsupported: this Codex has no thread queue; update it to 0.149.0 or later."


class UnknownThread(Refusal):
    """No turn of the thread is on disk: it is new, ephemeral, deleted, or of another CODEX_HOME."""

    advice = (
        "Codex knows no such thread on disk: it has had no turn yet, is ephemeral or deleted, "
        "or CODEX_HOME is another one."
    )


class ThreadArchived(Refusal):
    """The thread takes nothing until a person unarchives it."""

    advice = "The Codex thread is archived: unarchive it."


class SubAgentThread(Refusal):
    """The thread is a sub-agent's; those take nothing from outside."""

    advice = "The Codex thread belongs to a sub-agent, which can't be given messages: join from its main thread."


class QueueFull(Refusal):
    """The queue holds 100; room comes as the thread's turns run."""

    advice = "The Codex thread's queue is full; the message waits until there is room."


class TextTooLarge(Refusal):
    """Over 1,048,576 characters in one message."""

    advice = "The text is too large for one Codex message."


class HistoryNotPaged(Refusal):
    """`thread/items/list` does not serve this thread: look in `thread/turns/list`, which may not know it."""

    advice = "The thread's items can't be listed."


class MalformedRequest(Refusal):
    """A fault of ours, or a server that wants other parameters; the same request will fail again."""

    advice = "Codex could not read the request, which is a fault of agent-channel or a newer Codex."


class UnclassifiedRefusal(Refusal):
    """An answer that no row names. It may have come after the effect, so it proves nothing."""

    without_effect = False
    advice = "Codex answered with an error that proves nothing."


_INVALID_REQUEST = -32600
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603

_TABLE: tuple[tuple[int, str, type[Refusal]], ...] = (
    (_INVALID_REQUEST, r"\S+ requires experimentalApi capability", QueueApiUnsupported),
    (_INVALID_REQUEST, r"Invalid request: unknown variant `thread/", QueueApiUnsupported),
    (_INTERNAL_ERROR, r"failed to read thread: invalid thread-store request: no rollout found", UnknownThread),
    (_INVALID_REQUEST, r"thread not loaded: ", UnknownThread),
    (_INVALID_REQUEST, r"invalid thread id: ", UnknownThread),
    (_INVALID_REQUEST, r"session \S+ is archived", ThreadArchived),
    (_INVALID_REQUEST, r"direct app-server input is not allowed for unloaded spawned sub-agents", SubAgentThread),
    (_INVALID_REQUEST, r"queue cannot contain more than \d+ submissions", QueueFull),
    (_INVALID_PARAMS, r"Input exceeds the maximum length", TextTooLarge),
    (_METHOD_NOT_FOUND, r"thread/items/list is not supported yet", HistoryNotPaged),
    (_INVALID_REQUEST, r"Invalid request: ", MalformedRequest),
    (_INVALID_REQUEST, r"only user input can be added to the user-message queue", MalformedRequest),
    (_INVALID_REQUEST, r"invalid (queue pagination )?cursor: ", MalformedRequest),
    (_INVALID_REQUEST, r"(Not|Already) initialized", MalformedRequest),
)
"""Code, beginning of the text (a regular expression), class; the first row that matches counts."""


def classify(answer: ErrorAnswer) -> Refusal:
    """The refusal that an error answer is; raise it, or keep it as evidence."""
    for code, beginning, refusal in _TABLE:
        if answer.code == code and re.match(beginning, answer.message):
            return refusal(answer)
    return UnclassifiedRefusal(answer)
