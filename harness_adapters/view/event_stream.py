"""An answer that goes on until its page is gone, or its events end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class EventStream(Response):
    """Server-sent events. The generator is closed at once when the page goes, not at the next event to it."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
            async with aclosing(self._events) as events:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for event in events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            tasks.cancel_scope.cancel()


async def _cancel_when_gone(receive: Receive, answer: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    answer.cancel()
