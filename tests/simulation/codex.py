"""Codex as a simulated receiver: its threads, their owners, and app-servers that answer late, badly or never.

The product's real client speaks to the fake app-server (`fakes/codex_connection.py`, the same that the contract
tests hold against the real one) through pipes whose every movement the driver decides.
"""

import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import anyio

from channel.clock import Clock
from channel.database import Row
from fakes.codex_app_server import AppServer
from fakes.codex_connection import Connection
from fakes.codex_store import CodexHome, Input, Turn, text_input
from fakes.codex_store import Row as QueuedRow
from fakes.codex_thread import ThreadOwner
from harness_adapters.codex.app_server import Opener
from harness_adapters.codex.owners import Owner
from harness_adapters.codex.thread_queue import ANSWER_S_MAX
from harness_adapters.codex.threads import Thread, thread_of
from harness_adapters.codex.transport import LineTransport, NothingSent, TransportClosed, TransportUnavailable
from harness_adapters.codex.wire import QUEUE_ADD
from tests.simulation.machine import CURRENT, Move, Process, turn
from tests.simulation.truth import Truth

TURNS_S = (0.0, 0.0, 1.5, 4.0, 20.0)
"""How long a model's turn takes; meanwhile what is added waits in the queue."""


HANGS_S = (1.0, ANSWER_S_MAX + 2)
HANGS_AFTER_ADD = 0.04
RUSHES = 0.2


class WatchedHome(CodexHome):
    """The store of all threads, which tells what really happens in it."""

    def __init__(self, path: Path, clock: Clock, truth: Truth) -> None:
        super().__init__(path, clock)
        self._truth = truth

    def add_row(self, thread_id: str, input_: Input, client_id: str) -> QueuedRow:
        row = super().add_row(thread_id, input_, client_id)
        self._truth.note_added(thread_id, client_id, input_[0]["text"])
        return row

    def start_turn(self, thread_id: str, *, row_id: str | None = None) -> Turn:
        for row in self.rows(thread_id):
            if row.id == row_id:
                self._truth.threads[thread_id].queued.discard(row.client_id)
        return super().start_turn(thread_id, row_id=row_id)

    def delete_row(self, thread_id: str, row_id: str) -> bool:
        for row in self.rows(thread_id):
            if row.id == row_id:
                thread = self._truth.threads[thread_id]
                thread.queued.discard(row.client_id)
                thread.tampered.add(row.client_id)
        return super().delete_row(thread_id, row_id)

    def add_item(self, turn: Turn, body: dict[str, object]) -> None:
        super().add_item(turn, body)
        key = body.get("clientId")
        if body["type"] == "userMessage" and isinstance(key, str):
            self._truth.threads[turn.thread_id].shown.append(key)


class AppServerProcess(LineTransport):
    """One app-server, the child of a process of ours, and the two pipes between them.

    The driver moves it: `serve` a line that waits in its input, `answer` with one of the lines that it wrote, `die`.
    When its client is gone it may still serve what it was sent.
    """

    def __init__(self, server: AppServer, client: Process, name: str, truth: Truth) -> None:
        self.client = client
        self.name = name
        self.dead = False
        self.hangs = False
        """It reads nothing and writes nothing until further notice, which comes not before `hangs_until_s`."""
        self.hangs_until_s = 0.0
        self.input: deque[str] = deque()
        self.output: list[str] = []
        self._arrived: deque[str] = deque()
        self._changed = anyio.Event()
        self._client_closed = False
        self._has_added = False
        self._connection = Connection(server, self._write)
        self._truth = truth

    async def send(self, line: str) -> None:
        await turn(f"writes to {self.name}")
        if self.dead:
            raise NothingSent("the app-server has ended")
        self.input.append(line)
        await turn(f"has written to {self.name}")
        if self.dead:
            raise TransportClosed("the app-server has ended")

    async def receive(self) -> str:
        while not self._arrived:
            if self.dead:
                raise TransportClosed("the app-server has ended")
            await self._changed.wait()
        return self._arrived.popleft()

    async def aclose(self) -> None:
        self._client_closed = True

    @property
    def is_orphan(self) -> bool:
        return self._client_closed or self.client.dead

    @property
    def holds_an_add(self) -> bool:
        """Not yet done, or not yet answered."""
        return any(QUEUE_ADD in line for line in self.input) or (self._has_added and bool(self.output))

    async def serve(self, _: Random) -> str:
        """Read one line and do what it says. The answer lies in `output`."""
        line = self.input.popleft()
        request = json.loads(line)
        method, params = request["method"], request.get("params") or {}
        if method in ("thread/items/list", "thread/turns/list") and "cursor" not in params:
            self._truth.note_items_read(self.client.text, params["threadId"])
        self._has_added = method == QUEUE_ADD
        await self._connection.receive(line)
        return f"serves {method}"

    async def answer(self, rng: Random) -> str:
        """Pass on one line that it wrote, not necessarily the oldest."""
        self._arrived.append(self.output.pop(rng.randrange(len(self.output))))
        self._wake()
        return "answers"

    def hang(self, rng: Random) -> None:
        """For less or longer than a client waits."""
        self.hangs = True
        self.hangs_until_s = self.client.machine.loop.time() + rng.choice(HANGS_S)

    def die(self) -> None:
        self.dead = True
        self._wake()

    async def _write(self, line: str) -> None:
        if "id" in json.loads(line):  # notifications mean nothing to our client
            self.output.append(line)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class CodexThread:
    """One thread: who has it loaded, and what its owner does with its queue."""

    def __init__(self, home: CodexHome, name: str, thread_id: str, truth: Truth) -> None:
        self.home = home
        self.name = name
        self.thread_id = thread_id
        self.is_exec = False
        self.owner: ThreadOwner | None = None
        self._truth = truth
        self._item_is_there = False
        self._answers_at_s = 0.0

    def load(self) -> None:
        self.owner = ThreadOwner(self.home, self.thread_id)

    def unload(self) -> None:
        """Its session closes or dies: what was taken and not recorded is lost."""
        assert self.owner is not None
        self._note_lost()
        self.owner.close()
        self.owner = None

    def can_move(self) -> bool:
        if self.owner is None:
            return False
        if self.owner.running is None:
            return bool(self._truth.threads[self.thread_id].queued)
        return not self._item_is_there or self.home.clock.monotonic() >= self._answers_at_s

    async def move(self, rng: Random) -> str:
        """The next step of a turn: take a row, record it, answer after a while."""
        assert self.owner is not None
        if self.owner.running is None:
            self._item_is_there = False
            return "takes a row" if self.owner.take_row(even_if_paused=True) else "finds nothing"
        if not self._item_is_there:
            self._item_is_there = True
            self._answers_at_s = self.home.clock.monotonic() + rng.choice(TURNS_S)
            self.owner.record_item()
            return "records the item"
        self.owner.complete()
        return "answers"

    def rush(self) -> str:
        """The running turn ends and the next row becomes an item, all at once."""
        if self.owner is None:
            return "is not loaded"
        if self.owner.running is not None and self._item_is_there:
            self.owner.complete()
        if self.owner.running is None and self.owner.take_row(even_if_paused=True) is None:
            return "has nothing to take"
        self.owner.record_item()
        self._item_is_there = True
        return "takes and records a row"

    def refuse(self) -> bool:
        """A hook refuses the row that was taken; whether there was one."""
        if self.owner is None or self.owner.running is None or self._item_is_there:
            return False
        self._note_lost()
        self.owner.block()
        return True

    def edit(self, row: QueuedRow) -> None:
        """A person changes a row's text."""
        self._truth.threads[self.thread_id].tampered.add(row.client_id)
        self.home.update_row(row.id, text_input("something else"))

    def _note_lost(self) -> None:
        assert self.owner is not None
        if self.owner.running is not None and not self._item_is_there and self.owner.running_key:
            self._truth.threads[self.thread_id].tampered.add(self.owner.running_key)


@dataclass(frozen=True)
class SimulatedThread(Thread):
    """The product's view of a thread, on a machine whose processes are simulated."""

    codex: "Codex"

    def owner(self) -> Owner | None:
        return None

    def is_owned_by_exec(self) -> bool:
        thread = self.codex.threads[self.thread_id]
        return thread.is_exec and thread.owner is not None

    def openers(self) -> list[Opener]:
        return [Opener("child", self.codex.open_app_server)]


class Codex:
    """All threads and app-servers of one CODEX_HOME."""

    def __init__(self, home: WatchedHome, truth: Truth, tasks: anyio.abc.TaskGroup) -> None:
        self.home = home
        self.threads: dict[str, CodexThread] = {}
        self.app_servers: list[AppServerProcess] = []
        self.can_be_started = True
        self._truth = truth
        self._server = AppServer(home, tasks)
        self._started = 0

    def add_thread(self, name: str, thread_id: str) -> CodexThread:
        thread = self.threads[thread_id] = CodexThread(self.home, name, thread_id, self._truth)
        return thread

    def thread_of(self, connection: Row) -> Thread:
        return SimulatedThread(**vars(thread_of(connection)), codex=self)

    @asynccontextmanager
    async def open_app_server(self) -> AsyncIterator[LineTransport]:
        await turn("starts an app-server")
        if not self.can_be_started:
            raise TransportUnavailable("it can't be started")
        self._started += 1
        server = AppServerProcess(self._server, CURRENT.get(), f"app-server#{self._started}", self._truth)
        self.app_servers.append(server)
        try:
            yield server
        finally:
            await server.aclose()

    def moves(self) -> list[Move]:
        """What could happen next in Codex, in a fixed order."""
        found = []
        for server in self.app_servers:
            if server.hangs:
                continue
            if server.input:
                found.append(Move(server.name, partial(self._serve, server)))
            if server.output and not server.client.stopped:
                found.append(Move(server.name, server.answer))
        found += [Move(thread.name, thread.move) for thread in self.threads.values() if thread.can_move()]
        return found

    async def _serve(self, server: AppServerProcess, rng: Random) -> str:
        """Let it do its next request, and now and then something at the worst moment after it."""
        thread, said = self._thread_of_next(server), await server.serve(rng)
        if thread is not None and said.endswith("/list") and rng.random() < RUSHES:
            return f"{said}; {thread.name} {thread.rush()}"
        if said.endswith(QUEUE_ADD) and rng.random() < HANGS_AFTER_ADD:
            server.hang(rng)
            return f"{said}, and hangs"
        return said

    def _thread_of_next(self, server: AppServerProcess) -> CodexThread | None:
        params = json.loads(server.input[0]).get("params") or {}
        return self.threads.get(params.get("threadId", ""))

    def bury(self) -> None:
        """Forget app-servers that are dead, and those without a client that have nothing left to do."""
        for server in self.app_servers:
            if server.is_orphan and not server.input:
                server.dead = True
        self.app_servers = [server for server in self.app_servers if not server.dead]
