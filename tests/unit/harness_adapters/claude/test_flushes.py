"""What an open Monitor writes for which deliveries, and when it writes no more."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from channel.delivery_states import Event
from channel.errors import LeaseLost
from channel.messages import Message, PendingDelivery
from fakes.clock import FakeClock
from harness_adapters.claude.framing import FLUSH_UNITS_MAX
from harness_adapters.claude.pacing import UNLIMITED, Pacing
from harness_adapters.claude.pipe import OutputPipe
from harness_adapters.claude.receiver import MonitorReceiver, OpenMonitor
from tests.unit.harness_adapters.recording_waiter import RecordingWaiter
from waiters.background import background_tasks

WAIT_S = 20
IN_PARTS = "x" * 7_000


class Rig:
    """An open Monitor over a real socket, whose reader reads in the background and keeps what it read."""

    def __init__(self, reader: socket.socket, command: socket.socket) -> None:
        self.clock = FakeClock()
        self.waiter = RecordingWaiter()
        self.pipe = OutputPipe(command.fileno(), self.clock)
        self.monitor = MonitorReceiver(self.pipe, Pacing(UNLIMITED), self.clock, _no_transcript, str)
        self.opened = OpenMonitor(self.monitor, self.waiter)
        self.read = b""
        self._reader = reader

    def pending(self, *texts: str) -> list[PendingDelivery]:
        now_ms = self.clock.now_ms()
        return [
            PendingDelivery(number, Message(number, "hall", "ann", text, None, now_ms), "worker", 0)
            for number, text in enumerate(texts, start=1)
        ]

    async def hand_over(self, *delivery_ids: int) -> list[tuple[int, Event]]:
        """What is recorded while the reader reads all that comes."""
        with anyio.fail_after(WAIT_S):
            async with background_tasks() as tasks:
                tasks.start_soon(self._read)
                await self.opened.hand_over(delivery_ids)
        return [(outcome.delivery_id, outcome.event) for outcome in self.waiter.recorded]

    async def _read(self) -> None:
        while True:
            await anyio.wait_readable(self._reader)
            self.read += self._reader.recv(65_536)
            self.clock.advance(1)
            self.after_a_read()

    def after_a_read(self) -> None: ...


def _no_transcript() -> Path | None:
    return None


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    reader, command = socket.socketpair()
    with reader, command:
        yield Rig(reader, command)


def prepared(rig: Rig, *texts: str) -> list[int]:
    return [each.delivery_id for each in rig.opened.prepare(rig.pending(*texts))]


async def test_as_many_whole_deliveries_go_into_one_flush_as_fit(rig: Rig) -> None:
    chosen = prepared(rig, *["x" * 400] * 20)
    assert await rig.hand_over(*chosen) == [(delivery_id, Event.TAKEN) for delivery_id in chosen]
    assert chosen == [1, 2, 3, 4, 5, 6, 7]
    assert FLUSH_UNITS_MAX - 420 < len(rig.read) <= FLUSH_UNITS_MAX


async def test_a_delivery_in_parts_goes_alone(rig: Rig) -> None:
    assert prepared(rig, "short", IN_PARTS, "short") == [1]
    assert prepared(rig, IN_PARTS, "short") == [1]


async def test_only_what_was_recorded_is_written(rig: Rig) -> None:
    assert prepared(rig, "one", "two", "three") == [1, 2, 3]
    assert await rig.hand_over(2) == [(2, Event.TAKEN)]
    assert rig.read == b"2 hall ann\n|two\n"


@pytest.mark.fault("F10")
async def test_a_lease_that_is_lost_between_two_parts_ends_the_writing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig, "after_a_read", lambda: setattr(rig.waiter, "lost", True))
    assert prepared(rig, IN_PARTS) == [1]
    with pytest.raises(LeaseLost):
        await rig.hand_over(1)
    assert rig.waiter.recorded == []
    assert b"part=1/3" in rig.read and b"part=2/3" not in rig.read


async def test_a_waiter_that_stops_finishes_the_part_and_says_nothing_of_the_rest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays handed over, and is looked for."""
    monkeypatch.setattr(rig, "after_a_read", lambda: setattr(rig.waiter, "is_stopping", True))
    assert prepared(rig, IN_PARTS) == [1]
    assert await rig.hand_over(1) == []
    assert b"part=1/3" in rig.read and b"part=2/3" not in rig.read
