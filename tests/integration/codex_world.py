"""A Codex thread's waiter, whole, in the test's process, over the fake app-server in a process of its own.

The clock is moved by the test; the fake is started by the product as it starts `codex`.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from fakes.clock import FakeClock
from fakes.codex_app_server import write_executable
from fakes.codex_store import CodexHome
from fakes.codex_thread import new_thread
from harness_adapters.codex.envelope import ORIGIN
from harness_adapters.codex.wire import METHODS_EVER_SENT
from tests.another_session import ROOM, AnotherSession, ChannelView, open_view
from tests.codex_sessions import SENDER, delivery_of, thread_session

STEP_S = 1.0
LOOK_S = 0.01
ROLE = "codex"

ADD, LIST, ITEMS = "thread/queue/add", "thread/queue/list", "thread/items/list"

RESTS_S = [1, 2, 4, 8, 16, 32, 60, 60, 60]
"""At least so long the other end is left alone after each time that it failed."""
"""All that may ever be sent to an app-server: written out, so that the product's own list is held against it."""


@dataclass
class World:
    """One CODEX_HOME with a thread, the program that stands in for `codex`, and the channel."""

    home: CodexHome
    codex: Path
    thread: str
    clock: FakeClock
    view: ChannelView
    sender: AnotherSession

    def session(self, thread: str | None = None) -> AnotherSession:
        return thread_session(self.view, thread or self.thread, self.home.path, self.codex)

    async def join(self) -> dict[str, Any]:
        return await self.session().join(ROLE)

    async def waiter_detail(self) -> str:
        """What `join` says is wrong with the waiter, asked again."""
        return (await self.session().join(ROLE)).get("waiter_detail", "")

    async def send(self, text: str = "hello") -> int:
        message_id: int = (await self.sender.send(text, ROLE))["id"]
        return message_id

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Let time pass, a second at a time, until it holds."""
        while not await holds():
            self.clock.advance(STEP_S)
            await anyio.sleep(LOOK_S)

    async def until_state(self, message_id: int, *states: str, detail: str = "") -> dict[str, Any]:
        """Let time pass until the message's delivery stands so; its row."""

        async def holds() -> bool:
            row = await delivery_of(self.view, message_id)
            return row["state"] in states and row["detail"].startswith(detail)

        await self.until(holds)
        return dict(await delivery_of(self.view, message_id))

    async def until_well(self) -> None:
        """Let time pass until the waiter has nothing to say of itself."""

        async def holds() -> bool:
            return not await self.waiter_detail()

        await self.until(holds)

    def queued_texts(self) -> list[str]:
        return [row.input[0]["text"] for row in self.home.rows(self.thread)]

    def asked(self, method: str) -> int:
        """How often an app-server was asked this."""
        return sum(entry["method"] == method for entry in self.home.received())

    def keys(self) -> Counter[str]:
        """How often each key is in the queue or among the items."""
        said = (item.body.get("clientId") for item in self.home.items(self.thread))
        return Counter([*(row.client_id for row in self.home.rows(self.thread)), *filter(None, said)])


@asynccontextmanager
async def codex_world(root: Path) -> AsyncIterator[World]:
    """A world under `root`; at its end no app-server was asked anything but METHODS_EVER_SENT."""
    codex_home = root / ".codex"
    codex_home.mkdir()
    home, clock = CodexHome(codex_home), FakeClock()
    async with open_view(root / "channel" / "channel.db", clock) as view:
        sender = view.session(SENDER)
        await sender.join(SENDER)
        yield World(home, write_executable(root / "codex"), new_thread(home), clock, view, sender)
    asked = {entry["method"] for entry in home.received() if entry["method"] is not None}
    home.close()
    assert asked <= METHODS_EVER_SENT


def envelope(message_id: int, text: str) -> str:
    return f"{message_id} {ROOM} {SENDER}\n{ORIGIN}\n{text}"
