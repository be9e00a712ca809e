"""Faults of the fake app-server as a table: at which place, at which passing, what goes wrong.

A fault is written `place:method#n:what=argument`; `#n` (the n-th time, default the first; `#*` each time) and
`=argument` may be left out. Several are separated by `;`.

    before_effect:thread/queue/add#3:die     the 3rd add kills the server, no row
    after_effect:thread/queue/add:die        the row is there, the answer never comes
    after_effect:thread/queue/add:delay=lost the same window, held open until the signal "lost" is set
    before_effect:initialize:exit            ends before initialize is answered
    row_taken:turn:block                     the item never appears, the row is gone

They come from `--faults`, or from a test while the servers run:

    set_faults(home, "after_effect:thread/queue/add:drop")

Passages are counted in the home, not in a process: a server started after a fault killed its predecessor
doesn't fall into the same one.

| place | is passed |
|---|---|
| at_start | once a connection, before its first line is read (method: start) |
| before_effect | a request was read, nothing was done |
| after_effect | the effect is committed, nothing was answered |
| after_answer | the answer was written |
| row_taken | a loaded thread's row left the queue, there is no item yet (method: turn) |
| item_recorded | the item is recorded, the model has not answered (method: turn) |

| what | does |
|---|---|
| die, exit, stop | SIGKILL to itself; `os._exit(1)`; SIGSTOP (the process stays and does nothing) |
| drop | no answer; `before_effect`: no effect either |
| delay=NAME | sets the signal `reached-NAME`, waits for the signal NAME (fakes/signals.py) |
| hold | the answer is written after the next one: answers out of order |
| error=CODE:TEXT | this error instead of the result (default `-32603:database or disk is full`) |
| other_text | the row gets another text under the same key |
| lose_row | the row that was just answered is deleted: accepted and dropped |
| non_object | the result is a string |
| extra_fields | every object of the result has a field that nobody knows |
| missing_fields | every field of the result that is null is left out, and `text_elements` too |
| banner=TEXT | a line that is not JSON |
| ask_approval, ask_unknown | a request to the client; what it answers lands in `home.received()` |
| silent_turns | this connection never gets a turn's or an item's notification |
| block | the turn ends without its item, as when a hook refuses |
"""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.codex_store import CodexHome

Json = dict[str, Any]

_ANYWHERE = {"die", "exit", "stop", "delay"}
_TALK = {"banner", "ask_approval", "ask_unknown"}
_RESULT = {"non_object", "extra_fields", "missing_fields", "hold", "lose_row", "error", "drop"}
WHATS_AT: dict[str, set[str]] = {
    "at_start": _ANYWHERE | _TALK | {"silent_turns"},
    "before_effect": _ANYWHERE | _TALK | {"drop", "error", "other_text"},
    "after_effect": _ANYWHERE | _TALK | _RESULT,
    "after_answer": _ANYWHERE | _TALK | {"lose_row"},
    "row_taken": _ANYWHERE | {"block"},
    "item_recorded": _ANYWHERE,
}
DEFAULT_ERROR = "-32603:database or disk is full"
APPROVAL_METHOD = "item/commandExecution/requestApproval"
UNKNOWN_METHOD = "client/neverHeardOf"


@dataclass(frozen=True)
class Fault:
    """One row of the table. `nth` counts from 1; 0 means every time."""

    place: str
    method: str
    nth: int
    what: str
    argument: str

    @classmethod
    def parse(cls, spec: str) -> "Fault":
        """Raises ValueError, with the reason, for a spec that would never do anything."""
        parts = spec.strip().split(":", maxsplit=2)
        if len(parts) != 3:
            raise ValueError(f"{spec!r} is no fault: write place:method#n:what=argument")
        place, where, effect = parts
        method, _, nth = where.partition("#")
        what, _, argument = effect.partition("=")
        if what not in WHATS_AT.get(place, set()):
            allowed = WHATS_AT.get(place) or WHATS_AT
            raise ValueError(f"{spec!r} is no fault: choose one of {', '.join(sorted(allowed))}")
        return cls(place, method, 0 if nth == "*" else int(nth or 1), what, argument)


def parse_faults(specs: str) -> list[Fault]:
    """The faults of a `;`-separated list. Raises ValueError as `Fault.parse` does."""
    return [Fault.parse(spec) for spec in specs.split(";") if spec.strip()]


def set_faults(home: CodexHome, specs: str) -> None:
    """From now on these are the faults of every fake server in `home`, and counting starts again."""
    parse_faults(specs)
    home.faults_path.write_text(specs)
    home.forget_passages()


async def _nobody_listens(*_: object) -> None:
    raise RuntimeError("this exchange has no client: the fault belongs to another place")


@dataclass
class Exchange:
    """What a fault acts on: one request, or one turn, and the connection to tell about it.

    `request` may be changed before the effect, `answer` (None before the effect) before it is written.
    `marks` are the faults that the caller carries out itself: drop, hold, silent_turns, block.
    """

    home: CodexHome
    method: str
    write: Callable[[str], Awaitable[None]] = _nobody_listens
    ask: Callable[[str, Json], Awaitable[None]] = _nobody_listens
    request: Json = field(default_factory=dict)
    answer: Json | None = None
    marks: set[str] = field(default_factory=set)


class FaultTable:
    """The faults given at the start, and those that `set_faults` wrote since."""

    def __init__(self, home: CodexHome, specs: str = "") -> None:
        self._home = home
        self._given = parse_faults(specs)

    async def at(self, place: str, exchange: Exchange) -> None:
        """Pass `place`: do whatever is due there."""
        path = self._home.faults_path
        known = self._given + (parse_faults(path.read_text()) if path.exists() else [])
        here = [fault for fault in known if (fault.place, fault.method) == (place, exchange.method)]
        if not here:
            return
        passage = self._home.count_passage(f"{place}:{exchange.method}")
        for fault in here:
            if fault.nth in (0, passage):
                await _DO[fault.what](exchange, fault)


async def _die(exchange: Exchange, fault: Fault) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _exit(exchange: Exchange, fault: Fault) -> None:
    os._exit(1)


async def _stop(exchange: Exchange, fault: Fault) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


async def _delay(exchange: Exchange, fault: Fault) -> None:
    exchange.home.signals.set(f"reached-{fault.argument}")
    await exchange.home.signals.wait(fault.argument)


async def _mark(exchange: Exchange, fault: Fault) -> None:
    exchange.marks.add(fault.what)


async def _error(exchange: Exchange, fault: Fault) -> None:
    code, _, text = (fault.argument or DEFAULT_ERROR).partition(":")
    exchange.answer = {"error": {"code": int(code), "message": text}, "id": exchange.request["id"]}


async def _other_text(exchange: Exchange, fault: Fault) -> None:
    exchange.request["params"]["input"][0]["text"] += " and something else"


async def _lose_row(exchange: Exchange, fault: Fault) -> None:
    result = (exchange.answer or {}).get("result")
    if result is not None:
        thread_id = exchange.request["params"]["threadId"].lower()
        exchange.home.delete_row(thread_id, result["queuedSubmission"]["id"])


async def _non_object(exchange: Exchange, fault: Fault) -> None:
    _change_result(exchange, lambda result: "not an object")


async def _extra_fields(exchange: Exchange, fault: Fault) -> None:
    _change_result(exchange, _with_extra_fields)


async def _missing_fields(exchange: Exchange, fault: Fault) -> None:
    _change_result(exchange, _without_optional_fields)


async def _banner(exchange: Exchange, fault: Fault) -> None:
    await exchange.write(fault.argument or "Welcome to Codex!")


async def _ask_approval(exchange: Exchange, fault: Fault) -> None:
    thread_id = exchange.request.get("params", {}).get("threadId")
    await exchange.ask(APPROVAL_METHOD, {"threadId": thread_id, "itemId": "call_1", "command": "rm -r ."})


async def _ask_unknown(exchange: Exchange, fault: Fault) -> None:
    await exchange.ask(UNKNOWN_METHOD, {})


_DO: dict[str, Callable[[Exchange, Fault], Awaitable[None]]] = {
    "die": _die,
    "exit": _exit,
    "stop": _stop,
    "delay": _delay,
    "error": _error,
    "other_text": _other_text,
    "lose_row": _lose_row,
    "non_object": _non_object,
    "extra_fields": _extra_fields,
    "missing_fields": _missing_fields,
    "banner": _banner,
    "ask_approval": _ask_approval,
    "ask_unknown": _ask_unknown,
    **dict.fromkeys(("drop", "hold", "silent_turns", "block"), _mark),
}


def _change_result(exchange: Exchange, change: Callable[[Any], Any]) -> None:
    if exchange.answer is not None and "result" in exchange.answer:
        exchange.answer["result"] = change(exchange.answer["result"])


def _with_extra_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_extra_fields(each) for each in value]
    if isinstance(value, dict):
        known = {name: _with_extra_fields(each) for name, each in value.items()}
        return {**known, "addedInTheFuture": {"nested": [1, None]}}
    return value


def _without_optional_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_optional_fields(each) for each in value]
    if isinstance(value, dict):
        return {
            name: _without_optional_fields(each)
            for name, each in value.items()
            if each is not None and name != "text_elements"
        }
    return value
