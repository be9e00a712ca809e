"""A thread that a fake app-server has loaded: it runs the queued rows and tells its subscribers.

The order of notifications is that of the captures. The model answers at once; a text with `[[hang` in it
keeps the turn running until it is interrupted or steered.
"""

from collections.abc import Sequence
from typing import Protocol

import anyio

from fakes import codex_shapes as shapes
from fakes.codex_shapes import Json
from fakes.codex_store import CodexHome, Input, Turn, new_uuid
from fakes.codex_thread import ThreadOwner, hangs
from fakes.faults import Exchange, FaultTable

SEEN_BY_ALL = ("thread/started", "thread/status/changed", "thread/readState/changed")


class Subscriber(Protocol):
    """A connection, as far as turns know it."""

    async def notify(self, method: str, params: Json) -> None: ...


class LoadedThread:
    """Owns `thread_id` for this server. Raises AlreadyOwned where another process does.

    `everyone` are all connections of the server; those in `subscribers` get every notification.
    """

    def __init__(self, home: CodexHome, thread_id: str, faults: FaultTable, everyone: Sequence[Subscriber]) -> None:
        self.home = home
        self.thread_id = thread_id
        self.owner = ThreadOwner(home, thread_id)
        self.subscribers: list[Subscriber] = []
        self._faults = faults
        self._everyone = everyone
        self._poked = anyio.Event()
        self._cut_short = anyio.Event()

    @property
    def status(self) -> Json:
        return shapes.IDLE if self.owner.running is None else shapes.ACTIVE

    def poke(self) -> None:
        """Look at the queue now: this process changed it."""
        self._poked.set()

    def start_turn(self, input_: Input, key: str | None) -> Turn:
        """A turn with this input, or the running one steered by it."""
        if self.owner.running is not None:
            turn = self.owner.steer(input_, key)
            self._cut_short.set()
            return turn
        turn = self.owner.start_turn(input_, key)
        self.poke()
        return turn

    def start_queued(self) -> Turn | None:
        """The oldest row's turn, though the queue may be paused."""
        turn = self.owner.take_row(even_if_paused=True)
        self.poke()
        return turn

    def interrupt(self) -> None:
        self.owner.interrupt()
        self._cut_short.set()

    async def run(self, tick_s: float) -> None:
        """Run turns for ever; rows that other processes add are noticed each `tick_s` seconds."""
        while True:
            while (turn := self.owner.running or await self._take_row()) is not None:
                await self._play(turn)
            with anyio.move_on_after(tick_s):
                await self._poked.wait()
            self._poked = anyio.Event()

    async def tell(self, method: str, params: Json) -> None:
        """Notify whoever gets this notification."""
        for each in list(self._everyone if method in SEEN_BY_ALL else self.subscribers):
            await each.notify(method, params)

    async def tell_status(self) -> None:
        await self.tell("thread/status/changed", {"threadId": self.thread_id, "status": self.status})

    async def tell_queue_changed(self) -> None:
        await self.tell("thread/queue/changed", {"threadId": self.thread_id})

    async def _take_row(self) -> Turn | None:
        turn = self.owner.take_row()
        if turn is not None:
            await self.tell_queue_changed()
        return turn

    async def _play(self, turn: Turn) -> None:
        self._cut_short = anyio.Event()
        exchange = Exchange(self.home, "turn")
        await self.tell_status()
        await self.tell("turn/started", self._with_turn(shapes.new_turn(turn)))
        await self._faults.at("row_taken", exchange)
        if "block" in exchange.marks:
            await self._tell_end(self.owner.block(), [])
            return
        if self.owner.running is not None:
            self.owner.record_item()
            await self._tell_item(turn, self._last_item())
            await self._faults.at("item_recorded", exchange)
        if hangs(self.owner.running_input):
            await self._cut_short.wait()
        if self.owner.running is None:  # interrupted
            await self._tell_end(self._ended(turn), [])
            return
        ended = self.owner.complete()
        await self._tell_item(turn, self._last_item())
        await self.tell("thread/tokenUsage/updated", shapes.token_usage(self.thread_id, turn.id))
        await self.tell("account/rateLimits/updated", shapes.RATE_LIMITS)
        await self.tell("thread/readState/changed", {"threadId": self.thread_id, "readState": self.read_state()})
        await self._tell_end(ended, [self._last_item()])

    def read_state(self) -> Json:
        """From where on the thread is unread; the fake never marks anything as read."""
        first = self.home.turns(self.thread_id)[0]
        return shapes.read_state(first.id, new_uuid(self.home.clock.now_ms()))

    def _last_item(self) -> Json:
        return self.home.items(self.thread_id)[-1].body

    def _ended(self, turn: Turn) -> Turn:
        return next(each for each in self.home.turns(self.thread_id) if each.id == turn.id)

    def _with_turn(self, turn: Json) -> Json:
        return {"threadId": self.thread_id, "turn": turn}

    async def _tell_item(self, turn: Turn, body: Json) -> None:
        where = {"threadId": self.thread_id, "turnId": turn.id}
        started = {**body, "completedAtMs": None, **({"text": ""} if "text" in body else {})}
        at = body["startedAtMs"]
        await self.tell("item/started", {"item": started, **where, "startedAtMs": at})
        if "text" in body:
            delta = {**where, "itemId": body["id"], "delta": body["text"]}
            await self.tell("item/agentMessage/delta", delta)
        completed = {"item": body, **where, "contentTokenCount": None, "completedAtMs": at}
        await self.tell("item/completed", completed)

    async def _tell_end(self, turn: Turn, items: list[Json]) -> None:
        view = "summary" if items else "notLoaded"
        await self.tell_status()
        ended = {**shapes.ended_turn(turn), "items": items, "itemsView": view}
        await self.tell("turn/completed", self._with_turn(ended))
