"""A thread's queue over a server whose answers the test lists, and the shapes of those answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from harness_adapters.codex.jsonrpc_peer import Peer, open_peer
from harness_adapters.codex.thread_queue import ThreadQueue
from tests.unit.harness_adapters.codex.played_server import PlayedServer
from waiters.background import background_tasks

SOON = 5.0
THREAD = "01a22c1e-42d9-7ab1-ac8d-cd31aca2b89b"
NOW_MS = 1_796_036_510_000
NOT_SUPPORTED = (-32601, "thread/items/list is not supported yet")
Result = TypeVar("Result")


class Conversation:
    """A thread queue whose server gives the answers that the test lists, in their order."""

    def __init__(self, server: PlayedServer, peer: Peer) -> None:
        self.server = server
        self.peer = peer
        self.queue = ThreadQueue(peer)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def of(self, call: Callable[[], Awaitable[Result]], *answers: object) -> Result:
        """The call's result while the server gives `answers`: a result, or a pair (code, message)."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._answer, answers)
            result = await call()
        return result  # noqa: RET504 - the group may swallow, says mypy

    async def _answer(self, answers: tuple[object, ...]) -> None:
        for answer in answers:
            request = await self.server.asked()
            self.asked.append((request["method"], request["params"]))
            if isinstance(answer, tuple):
                self.server.refuse(request, *answer)
            else:
                self.server.answer(request, answer)


@asynccontextmanager
async def conversation() -> AsyncIterator[Conversation]:
    server = PlayedServer()
    with anyio.fail_after(SOON):
        async with open_peer(server, lambda *_: None) as peer:
            yield Conversation(server, peer)
    server.clear_away()


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "text_elements": []}


def row(number: int, key: object = None, parts: object = None) -> dict[str, Any]:
    return {"id": f"row-{number}", "clientUserMessageId": key, "input": parts, "responsesapiClientMetadata": 1}


def user_item(key: str | None, text: str, started_at_ms: int | None = NOW_MS) -> dict[str, Any]:
    return {
        "type": "userMessage",
        "id": "item",
        "clientId": key,
        "content": [text_part(text)],
        "startedAtMs": started_at_ms,
    }


def items(*found: dict[str, Any], next_cursor: str | None = None) -> dict[str, Any]:
    return {
        "data": [{"turnId": "turn", "item": item, "startedAtMs": None} for item in found],
        "nextCursor": next_cursor,
        "backwardsCursor": "{}",
    }
