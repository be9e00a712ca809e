"""Sessions of a channel that live in the test's own process: they join, send, and see how it stands.

They call the product's tools as the MCP server does, with the protocol left out, so their answers are what
a model would read.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from channel.clock import Clock
from channel.database import Row
from channel.membership import Caller
from harness_adapters.callers import OTHER_HARNESS
from harness_adapters.claude.addresses import keyed_address
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel, open_channel
from harness_adapters.tool_calls import Answer, ToolCalls

LOOK_S = 0.02
"""Other processes change the rows, and ring no bell of the test's: they are looked at this often."""

ROOM = "hall"

_DELIVERIES = """
SELECT d.message_id, d.delivery_id, d.state, d.detail, d.repeats, m.sender, m.text, r.name AS recipient
FROM deliveries d JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
ORDER BY d.message_id
"""

_ROLES = """
SELECT r.name, c.address FROM roles r JOIN connections c ON c.connection_id = r.connection_id
WHERE r.ended_at_ms IS NULL
"""


class AnotherSession:
    """One session in ROOM. Made by `another_session` or `ChannelView.session`."""

    def __init__(self, calls: ToolCalls, caller: Caller) -> None:
        self._calls = calls
        self._caller = caller

    async def join(self, name: str, room: str = ROOM) -> Answer:
        return await self._calls.join(self._caller, {"room": room, "name": name})

    async def leave(self) -> Answer:
        return await self._calls.leave(self._caller, {})

    async def send(self, text: str, to: str | list[str]) -> Answer:
        """Send to one role, or to several; the answer has the message's `id`, and how it stands under `to`."""
        return await self._calls.send(self._caller, {"text": text, "to": to})


class ChannelView:
    """The channel's file, open in the test. Waits have no limit: use `anyio.fail_after`."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._calls = ToolCalls(
            channel,
            Adoption(channel.membership, channel.deliveries, channel.supervisor, channel.clock),
        )

    def session(self, key: str) -> AnotherSession:
        """A session of a harness that agent-channel does not know; its process is the test's."""
        process = self.channel.process.to_text()
        return self.session_of(Caller(keyed_address(key), OTHER_HARNESS, process, process))

    def session_of(self, caller: Caller) -> AnotherSession:
        return AnotherSession(self._calls, caller)

    async def deliveries(self, *, to: str) -> list[Row]:
        """All deliveries to a role, in the order of their messages."""
        rows = await self.channel.database.read(_DELIVERIES)
        return [row for row in rows if row["recipient"] == to]

    async def states(self, *, to: str) -> list[str]:
        return [row["state"] for row in await self.deliveries(to=to)]

    async def until_states(self, expected: list[str], *, to: str) -> None:
        """Return once the deliveries to a role stand so."""
        while await self.states(to=to) != expected:  # noqa: ASYNC110 - other processes change them
            await anyio.sleep(LOOK_S)

    async def roles(self) -> dict[str, str]:
        """The address behind each role that is held."""
        rows = await self.channel.database.read(_ROLES)
        return {row["name"]: row["address"] for row in rows}

    async def waiter(self, address: str) -> Mapping[str, Any] | None:
        """The row of an address's lease."""
        row = await self.channel.database.read_one("SELECT * FROM waiters WHERE address = ?", (address,))
        return None if row is None else dict(row)

    async def until_waiter(self, address: str, holds: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """The lease's row, once it is there and `holds` is true of it."""
        while (row := await self.waiter(address)) is None or not holds(row):  # noqa: ASYNC110 - as above
            await anyio.sleep(LOOK_S)
        return row

    async def until_offline(self, address: str) -> None:
        """Return once nobody serves the address, as any other session sees it."""
        while await self.channel.leases.is_held(address):  # noqa: ASYNC110 - another process serves it
            await anyio.sleep(LOOK_S)

    async def until_active(self, address: str) -> None:
        """Return once a waiter serves the address."""
        while not await self.channel.leases.is_held(address):  # noqa: ASYNC110 - another process serves it
            await anyio.sleep(LOOK_S)


@asynccontextmanager
async def open_view(database: Path, clock: Clock | None = None) -> AsyncIterator[ChannelView]:
    """The channel at `database`, made if need be; on the system's clock, if none is given."""
    async with open_channel(database, durable=False, clock=clock) as channel:
        yield ChannelView(channel)
