"""A Monitor's session by itself: a real socket, and a waiter whose store is locked."""

import socket
from pathlib import Path

import anyio

from channel.delivery_states import Event
from channel.errors import StoreBusy
from channel.messages import Message, PendingDelivery
from fakes.clock import FakeClock
from harness_adapters.claude.pacing import UNLIMITED, Pacing
from harness_adapters.claude.pipe import OutputPipe
from harness_adapters.claude.receiver import BLOCKED_AFTER_S, MonitorReceiver
from tests.unit.harness_adapters.recording_waiter import RecordingWaiter

WAIT_S = 20


class WaiterOfALockedStore(RecordingWaiter):
    """It can't say how it goes; what it is given to record arrives later, when the lock is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.has_tried_to_say = anyio.Event()

    async def say(self, trouble: str) -> None:
        if trouble:
            self.has_tried_to_say.set()
            raise StoreBusy


async def test_that_a_blocked_reader_can_not_be_reported_does_not_end_the_stream() -> None:
    """Ours: it ended with a traceback, and Monitor shows nothing of stderr (found by the simulation)."""
    clock, waiter = FakeClock(), WaiterOfALockedStore()
    reader, command = socket.socketpair()
    with reader, command:
        pipe = OutputPipe(command.fileno(), clock)
        receiver = MonitorReceiver(pipe, Pacing(UNLIMITED), clock, _no_transcript, str)
        async with receiver.open(waiter) as session, anyio.create_task_group() as tasks:
            pending = PendingDelivery(1, Message(1, "hall", "ann", "hello", None, clock.now_ms()), "worker", 0)
            session.prepare([pending])
            tasks.start_soon(session.hand_over, [1])
            with anyio.fail_after(WAIT_S):
                await clock.until_asleep(BLOCKED_AFTER_S)
                clock.advance(BLOCKED_AFTER_S)
                await waiter.has_tried_to_say.wait()
                reader.recv(65_536)
                while not waiter.recorded:
                    clock.advance(1)
                    await anyio.lowlevel.checkpoint()
    assert [outcome.event for outcome in waiter.recorded] == [Event.TAKEN]


def _no_transcript() -> Path | None:
    return None
