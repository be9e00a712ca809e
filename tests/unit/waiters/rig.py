"""A Codex thread and a boss in one room, and ways to wait for what a waiter does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from channel.deliveries import Deliveries
from fakes.clock import FakeIds
from fakes.receiver import FakeReceiver
from tests.unit.world import Channel, claude, codex
from waiters.background import background_tasks
from waiters.delivery_loop import DeliveryLoop
from waiters.supervisor import Supervisor, open_supervisor

WAIT_S = 45  # for a busy machine; nothing here takes so long


async def furnish(channel: Channel) -> None:
    """The boss (`ann`) and the worker, whose session is `thread`."""
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")


async def send(channel: Channel, *texts: str) -> list[int]:
    """From the boss to the worker; the message ids."""
    return [(await channel.send("ann", "worker", text)).message_id for text in texts]


def written(receiver: FakeReceiver) -> list[int]:
    """The messages that reached the harness, each as often as it did."""
    return [each.message_id for each in receiver.written.items]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until it is so. Each asking reads the store, so that others run meanwhile."""
    with anyio.fail_after(WAIT_S):
        while not await condition():
            await anyio.lowlevel.checkpoint()


async def until_state(channel: Channel, message_id: int, state: str) -> None:
    async def reached() -> bool:
        return (await channel.states()).get(message_id) == state

    await until(reached)


async def until_detail(channel: Channel, detail: str, address: str = "thread") -> None:
    """What the waiter says of itself begins so, or is empty."""

    async def said() -> bool:
        found = await channel.leases.detail(address)
        return found.startswith(detail) if detail else not found

    await until(said)


async def until_step(receiver: FakeReceiver, step: str, times: int = 1) -> None:
    with anyio.fail_after(WAIT_S):
        while receiver.steps.items.count(step) < times:
            await receiver.steps.next()


async def until_asleep(channel: Channel, *seconds: float) -> None:
    with anyio.fail_after(WAIT_S):
        await channel.clock.until_asleep(*seconds)


@asynccontextmanager
async def waiter(
    channel: Channel, receiver: FakeReceiver, *, process: str = "p1", until_idle: bool = False
) -> AsyncIterator[DeliveryLoop]:
    """A waiter of the thread, which dies at the end of the body without giving its lease back."""
    lease = await channel.leases.take("thread", process, "")
    loop = DeliveryLoop(lease, receiver, channel.deliveries, channel.leases, channel.clock)
    async with background_tasks() as tasks:
        tasks.start_soon(_run, loop, until_idle)
        yield loop


async def _run(loop: DeliveryLoop, until_idle: bool) -> None:
    await loop.run(until_idle=until_idle)


@asynccontextmanager
async def supervisor(channel: Channel, process: str) -> AsyncIterator[Supervisor]:
    """The waiters of one process."""
    ids = FakeIds(first=abs(hash(process)) % 2**32)
    deliveries: Deliveries = channel.deliveries
    async with open_supervisor(channel.database, deliveries, channel.leases, channel.clock, ids, process) as opened:
        yield opened
