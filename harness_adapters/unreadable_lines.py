"""Requests that the SDK can't parse and would drop without an answer: they get one.

A text with half of a surrogate pair is one: a client writes it as the escape of valid JSON, the SDK's
parser takes none, and the harness would wait for its time-out.
"""

import json
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

REFUSAL = (
    "This call can't be read: it holds half of a surrogate pair (a broken character), which no receiver can be "
    "given exactly. Remove or replace that character and call again. Nothing was done."
)

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
            error = types.ErrorData(code=types.INVALID_PARAMS, message=REFUSAL)
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
    """The id of a request whose line Python's parser takes, and the SDK's does not; else None."""
    if not isinstance(item, ValidationError):
        return None
    line = item.errors()[0]["input"]
    try:
        request = json.loads(line)
    except (TypeError, ValueError):
        return None
    if not isinstance(request, dict) or "method" not in request:
        return None
    request_id = request.get("id")
    return request_id if isinstance(request_id, (int, str)) else None
