"""What the page asks for: its own files, the feed, older messages, whole texts, and a person's decisions.

An error is `{"error": text}`; of a decision that may be forced, with `"may_be_forced": true`.
"""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from channel.decisions import Decisions
from channel.errors import ChannelError, DecisionRefused, StoreUnavailable, UnknownDelivery, UnknownMessage
from channel.inspection import Inspected
from channel.messages import ID_DIGITS_MAX, ID_MAX
from harness_adapters.composition import Channel
from harness_adapters.one_look import CantLook, look_for
from harness_adapters.sending_again import send_again
from harness_adapters.view.event_stream import EventStream
from harness_adapters.view.feed import Feed, TooManyPages
from harness_adapters.view.guard import Guard
from harness_adapters.view.page_files import page_routes
from harness_adapters.view.snapshots import PAGE_MESSAGES, JsonObject, Snapshots


def view_app(channel: Channel, feed: Feed, snapshots: Snapshots, token: str, port: int) -> ASGIApp:
    """The view of an open channel, for those who have the token."""
    answers = _Answers(channel, feed, snapshots)
    routes = [
        *page_routes(),
        Route("/api/feed", answers.feed),
        Route("/api/messages", answers.messages),
        Route("/api/messages/{message_id}", answers.text),
        Route("/api/deliveries/{delivery_id}", answers.delivery),
        Route("/api/deliveries/{delivery_id}/look", answers.look, methods=["POST"]),
        Route("/api/deliveries/{delivery_id}/resend", answers.resend, methods=["POST"]),
        Route("/api/deliveries/{delivery_id}/drop", answers.drop, methods=["POST"]),
    ]
    handlers = {ChannelError: _refused, TooManyPages: _refused}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token, port)


class _Answers:
    """One method a route."""

    def __init__(self, channel: Channel, feed: Feed, snapshots: Snapshots) -> None:
        self._channel = channel
        self._feed = feed
        self._snapshots = snapshots
        self._decisions = Decisions(channel.database, channel.clock)

    async def feed(self, request: Request) -> Response:
        return EventStream(self._feed.open(request.query_params.get("room", "")))

    async def messages(self, request: Request) -> Response:
        before = _number(request.query_params.get("before", str(ID_MAX)))
        found = await self._snapshots.messages(request.query_params.get("room", ""), before)
        return JSONResponse({"messages": found, "are_older": len(found) == PAGE_MESSAGES})

    async def text(self, request: Request) -> Response:
        return JSONResponse(await self._snapshots.text(_number(request.path_params["message_id"])))

    async def delivery(self, request: Request) -> Response:
        return JSONResponse(await self._snapshots.delivery((await self._named(request)).delivery_id))

    async def look(self, request: Request) -> Response:
        delivery = await self._named(request)

        async def look() -> JsonObject:
            return {"look": (await look_for(self._channel, delivery))._asdict()}

        return await self._decided(delivery, look)

    async def resend(self, request: Request) -> Response:
        delivery = await self._named(request)

        async def resend() -> JsonObject:
            forced = request.query_params.get("force") == "1"
            sent, look = await send_again(self._channel, delivery, force=forced)
            return {"sent_again": sent._asdict(), "look": look and look._asdict()}

        return await self._decided(delivery, resend)

    async def drop(self, request: Request) -> Response:
        delivery = await self._named(request)

        async def drop() -> JsonObject:
            await self._decisions.drop(delivery.delivery_id)
            return {}

        return await self._decided(delivery, drop)

    async def _decided(self, delivery: Inspected, decide: Callable[[], Awaitable[JsonObject]]) -> Response:
        """What it came to, with the delivery as it is then. What a look finds is recorded, whatever comes after it."""
        try:
            done = await decide()
        finally:
            self._feed.note_commit()
        return JSONResponse({**done, "delivery": await self._snapshots.delivery(delivery.delivery_id)})

    async def _named(self, request: Request) -> Inspected:
        return await self._snapshots.inspected(_number(request.path_params["delivery_id"]))


def _number(words: str) -> int:
    """An id, or one that nothing has: the answer is then that it is unknown."""
    return int(words) if words.isdecimal() and len(words) <= ID_DIGITS_MAX else ID_MAX


_STATUS = {
    UnknownDelivery: 404,
    UnknownMessage: 404,
    DecisionRefused: 409,
    CantLook: 409,
    TooManyPages: 503,
}
"""Of what is not here, 500 is said: a fault of ours."""


def _refused(_request: Request, error: Exception) -> Response:
    status = 503 if isinstance(error, StoreUnavailable) else _STATUS.get(type(error), 500)
    return JSONResponse({"error": str(error), "may_be_forced": getattr(error, "may_be_forced", False)}, status)
