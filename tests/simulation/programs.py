"""Our own processes: an MCP server without its protocol, and a streamer without its start.

Everything in them is the product's: store, leases, supervisor, delivery loop, look-ups, adoption, the tools, the two
receivers. Only what `channel`, the processes and the pipes are made of is the simulation's.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from channel.clock import IdSource
from channel.database import open_database
from channel.errors import ChannelError, LeaseHeld, LeaseLost, StoreUnavailable
from channel.leases import Leases
from channel.membership import Caller, Membership
from channel.presence import Presence
from channel.sending import Sending
from harness_adapters.backend import ANSWER_S_MAX
from harness_adapters.claude.monitor_stream import STOP_S_MAX
from harness_adapters.claude.pacing import Pacing
from harness_adapters.claude.pipe import ReaderGone
from harness_adapters.claude.receiver import MonitorReceiver
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel
from harness_adapters.tool_calls import ToolCalls
from tests.simulation.checks import CheckedDeliveries, Checker
from tests.simulation.claude import Monitor, SimulatedPipe
from tests.simulation.codex import Codex
from tests.simulation.machine import Machine, Process, turn
from waiters.background import background_tasks
from waiters.receiver import ReceiverEnded
from waiters.supervisor import open_supervisor

Answer = dict[str, Any]

OPENED_AGAIN_S = 1.0
"""In the place of the next tool call, at which the real server opens its store again."""


class Site(NamedTuple):
    """Where all processes run."""

    machine: Machine
    path: Path
    ids: IdSource
    checker: Checker
    codex: Codex


@asynccontextmanager
async def _open_channel(site: Site, process: Process, monitor: Monitor | None = None) -> AsyncIterator[Channel]:
    """As `composition.open_channel`."""
    machine, ids = site.machine, site.ids
    async with open_database(site.path, durable=False) as database:
        presence = Presence(machine, process.identity.boot_id, machine.is_alive)
        leases = Leases(database, machine, presence)
        deliveries = CheckedDeliveries(database, machine, leases, site.checker, process, monitor)
        async with open_supervisor(database, deliveries, leases, machine, ids, process.text) as supervisor:
            yield Channel(
                database=database,
                clock=machine,
                ids=ids,
                membership=Membership(database, machine, ids, presence),
                sending=Sending(database, machine, presence),
                leases=leases,
                deliveries=deliveries,
                process=process.identity,
                supervisor=supervisor,
            )


class Server:
    """An MCP server; `caller` is the session that speaks through it."""

    def __init__(self, site: Site, process: Process, caller: Caller) -> None:
        self.process = process
        self.caller = caller
        self._site = site
        self._tools: ToolCalls | None = None
        self._calls: TaskGroup | None = None
        self._end_of_input = anyio.Event()

    @property
    def is_ready(self) -> bool:
        return self._tools is not None and not self.process.dead and not self._end_of_input.is_set()

    def end_input(self) -> None:
        """Its harness closes its stdin."""
        self._end_of_input.set()

    def call(self, tool: str, arguments: Answer, on_answer: Callable[[Answer | ChannelError], None]) -> None:
        """Call a tool; its answer or refusal is passed on, unless the server dies before."""
        assert self._calls is not None
        self._calls.start_soon(self.process.as_current, self._call, tool, arguments, on_answer)

    async def main(self) -> None:
        """As `backend.Backend.run`: a store that can't be used is tried again."""
        while not self._end_of_input.is_set():
            try:
                await self._serve()
            except StoreUnavailable:
                self._tools = None
                await self._site.machine.sleep(OPENED_AGAIN_S)

    async def _serve(self) -> None:
        async with _open_channel(self._site, self.process) as channel:
            adoption = Adoption(
                channel.membership, channel.deliveries, channel.supervisor, channel.clock, self._site.codex.thread_of
            )
            async with background_tasks() as self._calls:
                self._tools = ToolCalls(channel, adoption)
                self._calls.start_soon(adoption.run)
                await self._end_of_input.wait()
                await turn("ends")
                await channel.supervisor.stop(ANSWER_S_MAX)

    async def _call(self, tool: str, arguments: Answer, on_answer: Callable[[Answer | ChannelError], None]) -> None:
        await turn(f"is called: {tool}")
        call: Callable[[Caller, Answer], Awaitable[Answer]] = getattr(self._tools, tool)
        try:
            answer: Answer | ChannelError = await call(self.caller, arguments)
        except ChannelError as error:
            answer = error
        await turn(f"answers {tool}")
        on_answer(answer)


class Streamer:
    """The command that a Monitor runs, for the session at `address`."""

    def __init__(self, site: Site, process: Process, monitor: Monitor, address: str) -> None:
        self.process = process
        self._site = site
        self._monitor = monitor
        self._address = address

    async def main(self) -> None:
        """As `monitor_stream.stream`, with a line where the real one prints a line."""
        pipe = SimulatedPipe(self._monitor)
        try:
            await self._serve(pipe)
        except (LeaseHeld, LeaseLost, StoreUnavailable) as error:
            await pipe.write(f"agent-channel: {' '.join(str(error).split())}\n".encode())
        except (ReaderGone, ReceiverEnded):
            pass

    async def _serve(self, pipe: SimulatedPipe) -> None:
        async with _open_channel(self._site, self.process, self._monitor) as channel:
            receiver = MonitorReceiver(
                pipe, Pacing(), channel.clock, self._monitor.session.transcript, lambda message_id: f"show {message_id}"
            )
            async with background_tasks() as tasks:
                with anyio.CancelScope() as serving:
                    tasks.start_soon(self._end_at_signal, channel, serving)
                    tasks.start_soon(self._end_with_reader, pipe, serving)
                    await channel.supervisor.hold(self._address, receiver)

    async def _end_at_signal(self, channel: Channel, serving: anyio.CancelScope) -> None:
        await self._monitor.sigterm.wait()
        await turn("has SIGTERM")
        await channel.supervisor.stop(STOP_S_MAX)
        serving.cancel()

    async def _end_with_reader(self, pipe: SimulatedPipe, serving: anyio.CancelScope) -> None:
        await pipe.wait_dead()
        await turn("sees its reader gone")
        serving.cancel()
