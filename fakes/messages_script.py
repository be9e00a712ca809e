"""The script of a fake model: rules that say what it answers to which request.

    script = [
        Rule(shown("please join"), call("mcp__agent-channel__join", {"room": "r", "name": "a"})),
        Rule(result_of("mcp__agent-channel__join"), lambda request: call("Monitor", ...)),
    ]

The first rule that has uses left and whose predicate holds gives the answer. Rules keep no state: the
server counts their uses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from fakes.messages_shown import ModelRequest


@dataclass(frozen=True)
class Text:
    """A text of the model."""

    text: str


@dataclass(frozen=True)
class ToolUse:
    """A tool call of the model. `name` as Claude Code names it: Bash, Monitor, `mcp__<server>__<tool>`."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """A turn of the model; with a tool use among its blocks Claude Code runs it and asks again."""

    blocks: tuple[Text | ToolUse, ...]


@dataclass(frozen=True)
class Refusal:
    """An HTTP error of the API, as `{"type": "error", "error": {"type": kind, "message": ...}}`.

    Claude Code asks again by itself after 429, 500 and above, not after 400.
    """

    status: int
    kind: str
    message: str


Answer = Reply | Refusal
Predicate = Callable[[ModelRequest], bool]


def say(text: str) -> Reply:
    """The model ends its turn with a text."""
    return Reply((Text(text),))


def call(tool: str, arguments: Mapping[str, Any]) -> Reply:
    """The model calls one tool."""
    return Reply((ToolUse(tool, arguments),))


def anything(request: ModelRequest) -> bool:
    """Holds for every request."""
    return True


def shown(text: str) -> Predicate:
    """Holds where the newest texts (user, system, tool results) contain `text`."""

    def holds(request: ModelRequest) -> bool:
        results = [result.text for result in request.newest_results]
        return any(text in each for each in [*request.newest_texts, *results])

    return holds


def result_of(tool: str) -> Predicate:
    """Holds where the request brings the result of a call of `tool`."""

    def holds(request: ModelRequest) -> bool:
        return any(result.tool == tool for result in request.newest_results)

    return holds


@dataclass(frozen=True)
class Rule:
    """When `when` holds, the model answers `answer` (or what it makes of the request).

    `times` is how often one server may use the rule, None for always. With `held`, the answer is sent once
    that event is set; one that is never set is a hang until the client leaves.
    """

    when: Predicate
    answer: Answer | Callable[[ModelRequest], Answer]
    times: int | None = 1
    held: anyio.Event | None = None

    def answer_to(self, request: ModelRequest) -> Answer:
        """What the model answers to this request."""
        return self.answer(request) if callable(self.answer) else self.answer


def rules_from_json(items: Sequence[Mapping[str, Any]]) -> list[Rule]:
    """A script from a file: a list of objects with these members, all optional.

    `shown` (text) and `result_of` (tool): when; without them, always. `say` (text), `call` (list of
    `{"name", "input"}`), or `refuse` (`{"status", "kind", "message"}`): the answer. `hold` (true): no answer
    at all. `times` (a number, or null for always; 1 if left out).

    Raises: ValueError for any other member, or none that answers.
    """
    return [_rule_from_json(item) for item in items]


_MEMBERS = {"shown", "result_of", "say", "call", "refuse", "hold", "times"}


def _rule_from_json(item: Mapping[str, Any]) -> Rule:
    if unknown := set(item) - _MEMBERS:
        raise ValueError(f"a rule has the members {sorted(_MEMBERS)}, not {sorted(unknown)}: {dict(item)}")
    conditions: list[Predicate] = []
    if "shown" in item:
        conditions.append(shown(item["shown"]))
    if "result_of" in item:
        conditions.append(result_of(item["result_of"]))
    return Rule(
        lambda request: all(condition(request) for condition in conditions),
        _answer_from_json(item),
        times=item.get("times", 1),
        held=anyio.Event() if item.get("hold") else None,
    )


def _answer_from_json(item: Mapping[str, Any]) -> Answer:
    if "refuse" in item:
        return Refusal(**item["refuse"])
    said = (Text(item["say"]),) if "say" in item else ()
    called = tuple(ToolUse(use["name"], use["input"]) for use in item.get("call", ()))
    if not said and not called and not item.get("hold"):
        raise ValueError(f"a rule answers with `say`, `call`, `refuse` or `hold`: {dict(item)}")
    return Reply((*said, *called))
