"""What a page is sent as it happens: server-sent events, each with a whole snapshot or the messages that are new.

A page that is open costs one question about the file each POLL_S, and one look at the processes each PRESENCE_S. With
no page open nothing runs. A page that reads slowly gets what is the case when it reads: nothing is kept for it.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from channel.errors import StoreUnavailable
from harness_adapters.composition import Channel
from harness_adapters.view.snapshots import PAGE_MESSAGES, JsonObject, Snapshots, is_settled

POLL_S = 0.5
"""How soon a page shows what another process wrote."""

PRESENCE_S = 5.0
"""Whether a session lives is not in the file."""

BEAT_S = 15.0
"""A page that hears nothing for three times as long connects anew; a page that is gone is noticed."""

PAGES_MAX = 8
"""Open at the same time, each with a task and a connection of its own."""


class TooManyPages(Exception):
    """PAGES_MAX are open."""

    def __init__(self) -> None:
        super().__init__(f"{PAGES_MAX} pages show this channel already: close one of them.")


UNSETTLED_MAX = 50
"""Of the messages that have left the newest ones, so many are still followed: the newest of them."""

_NO_TROUBLE = '{"text": ""}'


@dataclass
class _Page:
    """One open page, and what it has been sent.

    `messages`: those that are followed. `unsettled`: of those, to which something may happen yet.
    """

    room: str
    sent: dict[str, str] = field(default_factory=lambda: {"trouble": _NO_TROUBLE})
    messages: dict[int, str] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)


class Feed:
    """Sends pages what is new until `end`."""

    def __init__(self, channel: Channel, snapshots: Snapshots) -> None:
        self._channel = channel
        self._snapshots = snapshots
        self._pages = 0
        self._own_commits = 0
        self._has_ended = False

    def note_commit(self) -> None:
        """This process wrote something itself, which SQLite does not tell the connection that did."""
        self._own_commits += 1

    def end(self) -> None:
        """Every stream ends within POLL_S."""
        self._has_ended = True

    def open(self, room: str) -> AsyncGenerator[bytes, None]:
        """The stream of one page that shows `room`, or the room with the newest message for "".

        Raises TooManyPages.
        """
        if self._pages >= PAGES_MAX:
            raise TooManyPages
        return self._counted(_Page(room))

    async def _counted(self, page: _Page) -> AsyncGenerator[bytes, None]:
        self._pages += 1
        try:
            async for event in self._stream(page):
                yield event
        finally:
            self._pages -= 1

    async def _stream(self, page: _Page) -> AsyncGenerator[bytes, None]:
        clock = self._channel.clock
        seen: tuple[int, int] | None = None
        look_at = beat_at = clock.monotonic()
        while not self._has_ended:
            now = clock.monotonic()
            try:
                events = []
                version = (await self._channel.database.data_version(), self._own_commits)
                if version != seen:
                    events += await self._what_was_written(page)
                if now >= look_at:
                    events += await self._what_time_changes(page)
                    look_at = now + PRESENCE_S
                seen = version
                events += _if_new(page, "trouble", {"text": ""})
            except StoreUnavailable as error:
                seen, look_at = None, now + PRESENCE_S
                events = _if_new(page, "trouble", {"text": str(error)})
            if not events and now >= beat_at:
                events = [b": still here\n\n"]
            for event in events:
                yield event
                beat_at = now + BEAT_S
            await clock.sleep(POLL_S)

    async def _what_was_written(self, page: _Page) -> list[bytes]:
        rooms = await self._snapshots.rooms()
        if not page.room and rooms["rooms"]:
            page.room = rooms["rooms"][0]["name"]
        return [
            *_if_new(page, "rooms", rooms),
            *_if_new(page, "stuck", await self._snapshots.stuck()),
            *await self._messages(page),
        ]

    async def _messages(self, page: _Page) -> list[bytes]:
        """Those that are new or have changed, of the newest and of the unsettled ones before them.

        `is_all`: the page shows these and nothing else from now on; it is new, or more came at once than are read.
        """
        newest = await self._snapshots.messages(page.room)
        ids = {message["message_id"] for message in newest}
        is_all = "messages" not in page.sent or not (page.messages.keys() & ids or not ids)
        before = [] if is_all else sorted(page.unsettled - ids)[-UNSETTLED_MAX:]
        followed = [*(await self._snapshots.messages_of(before) if before else []), *newest]
        texts = {message["message_id"]: json.dumps(message) for message in followed}
        changed = [text for message_id, text in texts.items() if is_all or page.messages.get(message_id) != text]
        page.messages, page.sent["messages"] = texts, ""
        page.unsettled = {message["message_id"] for message in followed if not is_settled(message)}
        if not changed and not is_all:
            return []
        head = json.dumps({"room": page.room, "is_all": is_all, "are_older": len(newest) == PAGE_MESSAGES})
        return [_event("messages", f'{head[:-1]}, "messages": [{", ".join(changed)}]}}')]

    async def _what_time_changes(self, page: _Page) -> list[bytes]:
        """Sessions end and leases run out; minutes begin. That the hour follows a new message so late is enough."""
        return [
            *_if_new(page, "rooms", await self._snapshots.rooms()),
            *_if_new(page, "hour", await self._snapshots.hour()),
        ]


def _if_new(page: _Page, name: str, snapshot: JsonObject) -> list[bytes]:
    """An event, unless the page has just that."""
    text = json.dumps(snapshot)
    if page.sent.get(name) == text:
        return []
    page.sent[name] = text
    return [_event(name, text)]


def _event(name: str, json_text: str) -> bytes:
    """JSON has no line end, so each event is one line of data."""
    return f"event: {name}\ndata: {json_text}\n\n".encode()
