"""Requests that the SDK can't parse and would drop without an answer: they get one.

A text with half of a surrogate pair is one: a client writes it as the escape of valid JSON, the SDK's
parser takes none, and the harness would wait for its time-out. Others nest their values too deep, or hold a number
with thousands of digits.
"""

import re
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

HALF_CHARACTER = (
    "it holds half of a surrogate pair (a broken character), which no receiver can be given exactly. "
    "Remove or replace that character"
)
NOT_PLAIN = "it nests its values too deep, or is no plain JSON. Give each argument as the tool's schema says"
REFUSAL = "This call can't be read: {why} and call again. Nothing was done."

_WORD = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*(?:"|\Z)|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
"""Of JSON: a string (one without an end goes on to the line's), a sign, or a number or name."""

_ID = re.compile(r'-?\d{1,18}|"[^"\\]*"')

Item = SessionMessage | Exception


class AnsweringReadStream:
    """The SDK's read stream, with unreadable requests taken out and answered on `write`."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read = read
        self._write = write

    @property
    def last_context(self) -> Any:
        """The SDK takes a message's context from here."""
        return self._read.last_context

    async def receive(self) -> Item:
        while True:
            item: Item = await self._read.receive()
            request_id = _unreadable_request(item)
            if request_id is None:
                return item
            why = HALF_CHARACTER if "hex escape" in _reason(item) else NOT_PLAIN
            error = types.ErrorData(code=types.INVALID_PARAMS, message=REFUSAL.format(why=why))
            await self._write.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> "AnsweringReadStream":
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "AnsweringReadStream":
        await self._read.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        ended: bool | None = await self._read.__aexit__(kind, error, traceback)
        return ended


def _unreadable_request(item: Item) -> int | str | None:
    """The id of a request whose line the SDK's parser does not take; else None."""
    if not isinstance(item, ValidationError):
        return None
    line = item.errors()[0]["input"]
    members = _members(line) if isinstance(line, str) else {}
    request_id = members.get("id", "")
    if "method" not in members or not _ID.fullmatch(request_id):
        return None
    return request_id[1:-1] if request_id.startswith('"') else int(request_id)


def _reason(item: Item) -> str:
    return str(item.errors()[0]["msg"]) if isinstance(item, ValidationError) else ""


def _members(line: str) -> dict[str, str]:
    """The plain values of an object that no parser takes, by name, as they are written; "" for what is not plain."""
    depth, found = 0, {}
    name = before = ""
    for word in _WORD.findall(line):
        depth -= word in "]}"
        if depth == 1:
            if word == ":":
                name = before
                found[name[1:-1]] = ""
            elif before == ":":
                found[name[1:-1]] = word
        depth += word in "[{"
        before = word
    return found
