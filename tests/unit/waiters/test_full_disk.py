"""A disk that is full at each step of a delivery: nothing is given twice, nothing is lost, and it is said."""

from pathlib import Path

import anyio
import pytest

from channel.delivery_states import Policy
from fakes.receiver import FakeReceiver, answered, hanging
from tests.small_disk import needs_root, small_disk
from tests.unit.waiters.rig import WAIT_S, furnish, send, supervisor, until, until_asleep, written
from tests.unit.world import Channel, World
from waiters.supervisor import Supervisor

pytestmark = [needs_root, pytest.mark.fault("F43")]


async def until_trouble(waiters: Supervisor) -> str:
    """What the waiter says of itself once it could not go on."""
    with anyio.fail_after(WAIT_S):
        while not (trouble := await waiters.first_attempt("thread")):
            await anyio.lowlevel.checkpoint()
    return trouble


async def until_settled(channel: Channel, state: str) -> None:
    """Let time pass until all deliveries are in a state."""

    async def settled() -> bool:
        channel.clock.advance(1)
        return set((await channel.states()).values()) == {state}

    await until(settled)


@pytest.mark.parametrize("policy", Policy)
async def test_a_disk_that_is_full_at_the_hand_over_leaves_the_message_waiting(tmp_path: Path, policy: Policy) -> None:
    receiver = FakeReceiver(policy)
    with small_disk(tmp_path / "disk") as disk:
        async with World(disk.folder).process() as channel, supervisor(channel, "p1") as waiters:
            await furnish(channel)
            waiters.serve("thread", receiver)
            await until_asleep(channel, 20)
            await send(channel, "one")
            disk.fill()
            waiters.wake("thread")
            trouble = await until_trouble(waiters)
            assert written(receiver) == []
            assert await channel.states() == {1: "pending"}
            disk.free()
            await until_settled(channel, "seen" if policy is Policy.MONITOR else "accepted")
    assert trouble.startswith("store unavailable: The disk that holds ")
    assert written(receiver) == [1]


@pytest.mark.parametrize("policy", Policy)
async def test_a_disk_that_is_full_when_the_receiver_has_it_is_no_reason_to_give_it_again(
    tmp_path: Path, policy: Policy
) -> None:
    """The answer can't be recorded; the next look finds the message where it is."""
    receiver, answer = FakeReceiver(policy), anyio.Event()
    receiver.will(hanging(answer, answered()))
    with small_disk(tmp_path / "disk") as disk:
        async with World(disk.folder).process() as channel, supervisor(channel, "p1") as waiters:
            await furnish(channel)
            await send(channel, "one")
            waiters.serve("thread", receiver)
            with anyio.fail_after(WAIT_S):
                await receiver.written.next()
            disk.fill()
            answer.set()
            trouble = await until_trouble(waiters)
            assert await channel.states() == {1: "handed_over"}
            disk.free()
            await until_settled(channel, "seen" if policy is Policy.MONITOR else "accepted")
    assert trouble.startswith("store unavailable: The disk that holds ")
    assert written(receiver) == [1]
