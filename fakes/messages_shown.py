"""What a request to the Messages API shows the model.

Claude Code repeats the whole conversation in every request, so "what is new" and "each event once" need
rules; they are here, and nothing of HTTP is. The shapes were seen with Claude Code 2.1.332: a text is a
string or a list of blocks, and the same one may change from blocks to a string in a later request.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

_NOTIFICATION = re.compile(r"<task-notification>\n(.*?)\n</task-notification>", re.DOTALL)
_FIELD = re.compile(r"<(task-id|status|summary|event)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True)
class ToolResult:
    """The result of one tool call, as the model reads it; `tool` is "" where no call in the history fits."""

    tool: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class Notification:
    """One `<task-notification>`: a Monitor's event, or its end. Entities (`&lt;`) are undone.

    `event` is the text of `<event>`, None where there is none; `status` is "" but at the end of a task.
    """

    task_id: str
    summary: str
    event: str | None
    status: str


@dataclass(frozen=True)
class ModelRequest:
    """One POST to /v1/messages. `number` counts them from 0 on; `session_id` is "" where none was sent."""

    number: int
    session_id: str
    body: Mapping[str, Any]

    @property
    def is_conversation(self) -> bool:
        """Whether it is a turn of the agent: requests beside it (titles, classifiers) carry no tools."""
        return bool(self.body.get("tools"))

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The whole history."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", ())
        return messages

    @property
    def newest(self) -> Sequence[Mapping[str, Any]]:
        """The messages after the last one of the model. After a refused request they come again."""
        turns = [index for index, message in enumerate(self.messages) if message["role"] == "assistant"]
        return self.messages[turns[-1] + 1 :] if turns else self.messages

    @property
    def texts(self) -> list[str]:
        """Every text of the user and the system in the history, in order."""
        return texts(self.messages)

    @property
    def newest_texts(self) -> list[str]:
        """Those of `texts` that stand after the last message of the model."""
        return texts(self.newest)

    @property
    def results(self) -> list[ToolResult]:
        """Every tool result in the history, in order."""
        return self._results(self.messages)

    @property
    def newest_results(self) -> list[ToolResult]:
        """Those of `results` that stand after the last message of the model."""
        return self._results(self.newest)

    @property
    def notifications(self) -> list[Notification]:
        """Every task notification in the history, in order."""
        return notifications(self.texts)

    @property
    def newest_notifications(self) -> list[Notification]:
        """Those of `notifications` that stand after the last message of the model."""
        return notifications(self.newest_texts)

    def _results(self, messages: Iterable[Mapping[str, Any]]) -> list[ToolResult]:
        names = {block["id"]: block["name"] for block in _blocks(self.messages, "tool_use")}
        return [
            ToolResult(
                names.get(block["tool_use_id"], ""),
                "\n".join(_texts_of(block.get("content", ""))),
                bool(block.get("is_error")),
            )
            for block in _blocks(messages, "tool_result")
        ]


def texts(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """The texts of the user and the system (not those of the model, not tool results), in order."""
    return [
        text for message in messages if message["role"] in ("user", "system") for text in _texts_of(message["content"])
    ]


def notifications(shown: Iterable[str]) -> list[Notification]:
    """The task notifications in these texts. Their own `<`, `>` and `&` are escaped: none can be imitated."""
    found = []
    for text in shown:
        for notification in _NOTIFICATION.finditer(text):
            fields = {name: unescape(value) for name, value in _FIELD.findall(notification[1])}
            found.append(
                Notification(
                    fields.get("task-id", ""),
                    fields.get("summary", ""),
                    fields.get("event"),
                    fields.get("status", ""),
                )
            )
    return found


def each_notification_once(requests: Iterable[ModelRequest]) -> list[Notification]:
    """What these requests of one session showed, in order and without the repeats of the history.

    A history goes on from the earlier one whose notifications it begins with; only what follows is new.
    So a notification that was really shown twice is there twice, and a request sent again adds nothing.
    """
    shown: list[Notification] = []
    histories: list[list[Notification]] = []
    for request in requests:
        if request.is_conversation:
            history = request.notifications
            known = 0
            for earlier in reversed(histories):
                if len(earlier) > known:  # mostly only the last, which holds the others
                    known = max(known, _common_prefix(history, earlier))
            shown += history[known:]
            histories.append(history)
    return shown


def _common_prefix(left: Sequence[Notification], right: Sequence[Notification]) -> int:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))


def _blocks(messages: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [
        block
        for message in messages
        if not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == kind
    ]


def _texts_of(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]
