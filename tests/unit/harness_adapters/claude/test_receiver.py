"""An open Monitor by itself: a real socket, and a waiter whose store is locked."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from channel.delivery_states import Event
from channel.errors import StoreBusy
from channel.messages import Message, PendingDelivery
from fakes.clock import FakeClock
from harness_adapters.claude.pacing import MONITOR_LIMITS, UNLIMITED, Pacing
from harness_adapters.claude.pipe import OutputPipe
from harness_adapters.claude.receiver import (
    BLOCKED_AFTER_S,
    PASSED_ON_LOOK_S,
    PASSED_ON_S_MAX,
    MonitorReceiver,
    OpenMonitor,
)
from tests.unit.harness_adapters.recording_waiter import RecordingWaiter

WAIT_S = 20
STEP_S = 0.05

EVENT = "<task-notification>\n<task-id>b1</task-id>\n<event>1 hall ann\n|hello</event>\n</task-notification>"
QUEUED = json.dumps({"type": "queue-operation", "operation": "enqueue", "content": EVENT}) + "\n"
SHOWN = json.dumps({"type": "user", "message": {"role": "user", "content": EVENT}}) + "\n"


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
        async with receiver.open(waiter) as opened, anyio.create_task_group() as tasks:
            pending = PendingDelivery(1, Message(1, "hall", "ann", "hello", None, clock.now_ms()), "worker", 0)
            opened.prepare([pending])
            tasks.start_soon(opened.hand_over, [1])
            with anyio.fail_after(WAIT_S):
                await clock.until_asleep(BLOCKED_AFTER_S)
                clock.advance(BLOCKED_AFTER_S)
                await waiter.has_tried_to_say.wait()
                reader.recv(65_536)
                while not waiter.recorded:
                    clock.advance(1)
                    await anyio.lowlevel.checkpoint()
    assert [outcome.event for outcome in waiter.recorded] == [Event.TAKEN]


@pytest.mark.parametrize("record", [QUEUED, SHOWN], ids=["queued", "shown"])
async def test_the_next_flush_waits_until_monitor_has_made_its_event_of_the_last(tmp_path: Path, record: str) -> None:
    """Two flushes in one event are cut together, and a busy Monitor makes it late."""
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(record)  # an event like it, of before
    async with _monitor(transcript) as (clock, opened), anyio.create_task_group() as tasks:
        await _flush_one(clock, opened, tasks)
        is_ready = anyio.Event()
        tasks.start_soon(_set_when_ready, opened, is_ready)
        await _pass_time(clock, PASSED_ON_S_MAX - 1)
        waited = not is_ready.is_set()
        with transcript.open("a") as file:
            file.write(record)
        await _pass_time(clock, 3 * PASSED_ON_LOOK_S)
        assert waited and is_ready.is_set()


async def test_a_transcript_that_tells_nothing_of_events_is_waited_for_once(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.touch()
    async with _monitor(transcript) as (clock, opened), anyio.create_task_group() as tasks:
        for wait_s in (PASSED_ON_S_MAX, MONITOR_LIMITS.pause_s):
            await _flush_one(clock, opened, tasks)
            is_ready = anyio.Event()
            tasks.start_soon(_set_when_ready, opened, is_ready)
            await _pass_time(clock, wait_s + 2 * PASSED_ON_LOOK_S + MONITOR_LIMITS.pause_s)
            assert is_ready.is_set()


@asynccontextmanager
async def _monitor(transcript: Path) -> AsyncIterator[tuple[FakeClock, OpenMonitor]]:
    """An open Monitor whose reader takes all at once."""
    clock = FakeClock()
    reader, command = socket.socketpair()
    with reader, command, anyio.fail_after(WAIT_S):
        pipe = OutputPipe(command.fileno(), clock)
        receiver = MonitorReceiver(pipe, Pacing(), clock, lambda: transcript, str)
        async with receiver.open(RecordingWaiter()) as opened, anyio.create_task_group() as tasks:
            tasks.start_soon(_read_all, reader)
            yield clock, opened
            tasks.cancel_scope.cancel()


async def _read_all(reader: socket.socket) -> None:
    while True:
        await anyio.wait_readable(reader)
        reader.recv(65_536)


async def _flush_one(clock: FakeClock, opened: OpenMonitor, tasks: TaskGroup) -> None:
    opened.prepare([PendingDelivery(1, Message(1, "hall", "ann", "hello", None, clock.now_ms()), "worker", 0)])
    done = anyio.Event()

    async def flush() -> None:
        await opened.hand_over([1])
        done.set()

    tasks.start_soon(flush)
    while not done.is_set():
        await _pass_time(clock, 0.1)


async def _set_when_ready(opened: OpenMonitor, is_ready: anyio.Event) -> None:
    await opened.ready()
    is_ready.set()


async def _pass_time(clock: FakeClock, seconds: float) -> None:
    """In small steps, each of which lets everybody run."""
    for _ in range(round(seconds / STEP_S)):
        clock.advance(STEP_S)
        await anyio.wait_all_tasks_blocked()


def _no_transcript() -> Path | None:
    return None
