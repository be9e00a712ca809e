"""A loopback HTTP/1.1 server for the fake model endpoints: plain answers and server-sent events.

It owns sockets, framing and disconnects (parsing is h11's) and knows nothing of any provider's API.

    async def handle(request: Request, answer: Answer) -> None:
        await answer.send_event("greeting", {"text": "hello"})

    async with serve_http(handle) as url:
        ...  # url is "http://127.0.0.1:<port>"

A handler runs once a request. When its client goes away it is cancelled, so it may wait for as long as a
test likes. A handler that returns without having sent anything closes the connection: that is how a
lost answer is made. A handler that raises ends the server, and with it the test: a fake never hides a bug.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

LOOPBACK = "127.0.0.1"
RECEIVE_BYTES = 65_536  # one read; bodies are put together from as many as they need


@dataclass(frozen=True)
class Request:
    """One request, read whole. Header names are lower-case; of a repeated one the last counts."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises: `json.JSONDecodeError`."""
        return json.loads(self.body)


class Answer:
    """What a handler sends: either one `send` (or `send_json`), or any number of `send_event`.

    Sending to a client that has gone away ends the handler quietly.
    """

    def __init__(self, stream: SocketStream, http: h11.Connection, method: str) -> None:
        self._stream = stream
        self._http = http
        self._bodiless = method == "HEAD"

    @property
    def started(self) -> bool:
        """Whether the status line is on its way: after that only events can follow."""
        return self._http.our_state is not h11.SEND_RESPONSE

    async def send(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send one whole response."""
        await self._start(status, content_type, {"content-length": str(len(body)), **(headers or {})})
        if body and not self._bodiless:
            await self._write(h11.Data(data=body))
        await self._write(h11.EndOfMessage())

    async def send_json(self, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send one whole response with a JSON body."""
        await self.send(json.dumps(value).encode(), status=status, headers=headers)

    async def send_event(self, event: str, data: object) -> None:
        """Send one server-sent event; the first one also sends the response's head."""
        if not self.started:
            await self._start(200, "text/event-stream", {"cache-control": "no-cache"})
        if not self._bodiless:
            frame = f"event: {event}\ndata: {json.dumps(data)}\n\n"
            await self._write(h11.Data(data=frame.encode()))

    async def finish(self) -> None:
        """End an event stream (the server does it when the handler returns)."""
        if self._http.our_state is h11.SEND_BODY:
            await self._write(h11.EndOfMessage())

    async def _start(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        fields = {"content-type": content_type, **headers}
        await self._write(h11.Response(status_code=status, headers=list(fields.items())))

    async def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        await self._stream.send(self._http.send(event) or b"")


Handler = Callable[[Request, Answer], Awaitable[None]]


@asynccontextmanager
async def serve_http(handler: Handler, *, port: int = 0) -> AsyncGenerator[str]:
    """Serve on the loopback address, on `port` or any free one; yields the base URL without a slash.

    Leaving the context cuts the connections that are open and cancels their handlers.
    """
    async with AsyncExitStack() as stack:
        listener = await anyio.create_tcp_listener(local_host=LOOPBACK, local_port=port)
        await stack.enter_async_context(listener)
        tasks = await stack.enter_async_context(anyio.create_task_group())

        async def serve_connection(stream: SocketStream) -> None:
            async with stream:
                await _Connection(stream, handler).serve()

        tasks.start_soon(listener.serve, serve_connection)
        yield f"http://{LOOPBACK}:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 (not Django's)
        tasks.cancel_scope.cancel()


class _Connection:
    """One client connection: its requests one after another, for as long as it is kept alive."""

    def __init__(self, stream: SocketStream, handler: Handler) -> None:
        self._stream = stream
        self._handler = handler
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        try:
            while (request := await self._read_request()) is not None:
                answer = Answer(self._stream, self._http, request.method)
                await self._run_handler(request, answer)
                if self._http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                    return
                self._http.start_next_cycle()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError):
            return  # the client's business: it left, or it doesn't speak HTTP

    async def _read_request(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._continue_if_asked()
                self._http.receive_data(await self._receive())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _to_request(head, bytes(body))
            else:
                return None  # the client closed between two requests

    async def _continue_if_asked(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            head = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send(self._http.send(head) or b"")

    async def _receive(self) -> bytes:
        """The next bytes; none at the end of the stream, as h11 wants it."""
        try:
            return await self._stream.receive(RECEIVE_BYTES)
        except anyio.EndOfStream:
            return b""

    async def _run_handler(self, request: Request, answer: Answer) -> None:
        """Run the handler until it returns or its client is gone."""
        async with anyio.create_task_group() as tasks:

            async def watch_client() -> None:
                try:
                    while received := await self._receive():
                        self._http.receive_data(received)  # the next request, sent early
                except anyio.BrokenResourceError:
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch_client)
            try:
                await self._handler(request, answer)
                await answer.finish()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # it left while the handler was sending
            tasks.cancel_scope.cancel()


def _to_request(head: h11.Request, body: bytes) -> Request:
    target = urlsplit(head.target.decode())
    return Request(
        method=head.method.decode(),
        path=target.path,
        query=dict(parse_qsl(target.query, keep_blank_values=True)),
        headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )
