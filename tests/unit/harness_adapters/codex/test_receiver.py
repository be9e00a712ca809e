"""An open thread by itself: when it is ready, what an add's outcome is, and what a late answer says."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from channel.delivery_states import Event
from channel.messages import Message, PendingDelivery, key_of
from fakes.clock import FakeClock
from harness_adapters.codex.app_server import AppServer
from harness_adapters.codex.jsonrpc_peer import ErrorAnswer
from harness_adapters.codex.receiver import QUEUE_ROWS_MAX, OpenThread
from harness_adapters.codex.refusals import classify
from harness_adapters.codex.thread_queue import LateAdd
from harness_adapters.codex.threads import Thread
from harness_adapters.codex.wire import Added
from tests.unit.harness_adapters.codex.conversation import THREAD, Conversation, row
from tests.unit.harness_adapters.recording_waiter import RecordingWaiter
from waiters import processes, status
from waiters.receiver import NotNow

KEY = key_of("c", 1)
FULL = (-32600, "queue cannot contain more than 100 submissions")
PROVES_NOTHING = ErrorAnswer(-32603, "database is locked")


class Rig:
    """An open thread over the played server, for a thread that this very process owns."""

    def __init__(self, talk: Conversation, home: Path) -> None:
        self.talk = talk
        self.thread = Thread(THREAD, home, None, processes.own_identity(), None, None, runs_exec=False)
        self.late: deque[LateAdd] = deque()
        self.waiter = RecordingWaiter()
        self.clock = FakeClock()

    def opened(self) -> OpenThread:
        server = AppServer("played", None, self.talk.queue, self.talk.peer)
        return OpenThread(self.thread, server, lambda id_: key_of("c", id_), self.waiter, self.clock, self.late)

    async def add(self, opened: OpenThread, answer: object) -> list[Event]:
        """Hand one delivery over; what was recorded of it."""
        message = Message(1, "hall", "ann", "hello", None, self.clock.now_ms())
        (prepared,) = opened.prepare([PendingDelivery(7, message, "worker", 0)])
        await self.talk.of(lambda: opened.hand_over([prepared.delivery_id]), answer)
        return [outcome.event for outcome in self.waiter.recorded]

    def methods(self) -> list[str]:
        return [method.removeprefix("thread/queue/") for method, _ in self.talk.asked]


@pytest.fixture
def rig(talk: Conversation, tmp_path: Path) -> Rig:
    return Rig(talk, tmp_path)


def rows(count: int) -> dict[str, object]:
    return {"data": [row(number) for number in range(count)]}


@pytest.mark.fault("F50")
async def test_a_thread_that_codex_exec_owns_is_asked_nothing_and_given_nothing(rig: Rig) -> None:
    """Codex's: it takes a row at its exit and asks no model."""
    rig.thread = replace(rig.thread, runs_exec=True)
    with pytest.raises(NotNow, match=status.OWNED_BY_EXEC):
        await rig.opened().ready()
    assert rig.talk.server.wrote_nothing()


@pytest.mark.fault("F50")
async def test_a_thread_whose_codex_exec_has_ended_is_given_messages(rig: Rig) -> None:
    ended = replace(processes.own_identity(), start=0)
    rig.thread = replace(rig.thread, runs_exec=True, caller=ended)
    await rig.talk.of(rig.opened().ready, rows(0))


@pytest.mark.fault("F29")
async def test_a_full_queue_is_found_by_the_probe_before_anything_is_added(rig: Rig) -> None:
    opened = rig.opened()
    with pytest.raises(NotNow, match=status.QUEUE_FULL):
        await rig.talk.of(opened.ready, rows(QUEUE_ROWS_MAX))
    await rig.talk.of(opened.ready, rows(QUEUE_ROWS_MAX - 1))
    await opened.ready()  # it showed room: nothing more is asked until an add is refused
    assert rig.methods() == ["list", "list"]


@pytest.mark.fault("F29")
async def test_after_a_refusal_the_thread_is_probed_before_the_next_add(rig: Rig) -> None:
    opened = rig.opened()
    await rig.talk.of(opened.ready, rows(0))
    assert await rig.add(opened, FULL) == [Event.REFUSED_WITHOUT_EFFECT]
    with pytest.raises(NotNow, match=status.QUEUE_FULL):
        await rig.talk.of(opened.ready, rows(QUEUE_ROWS_MAX))
    assert rig.methods() == ["list", "add", "list"]


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        ({"queuedSubmission": row(1)}, Event.ANSWERED),
        ((PROVES_NOTHING.code, PROVES_NOTHING.message), Event.ANSWER_LOST),
        ({"queuedSubmission": {}}, Event.ANSWER_LOST),
    ],
)
async def test_only_what_is_proved_of_an_add_is_recorded(rig: Rig, answer: object, event: Event) -> None:
    assert await rig.add(rig.opened(), answer) == [event]


@pytest.mark.parametrize(
    ("late", "events"),
    [
        (LateAdd(THREAD, KEY, Added("row-1"), None), [Event.ANSWERED]),
        (LateAdd(THREAD, KEY, None, classify(ErrorAnswer(*FULL))), [Event.REFUSED_WITHOUT_EFFECT]),
        (LateAdd(THREAD, KEY, None, classify(PROVES_NOTHING)), []),
        (LateAdd(THREAD, key_of("c", 2), Added("row-1"), None), []),
    ],
)
async def test_a_late_answer_counts_for_what_it_proves_and_once(rig: Rig, late: LateAdd, events: list[Event]) -> None:
    opened = rig.opened()
    await rig.add(opened, {"queuedSubmission": {}})
    rig.late.append(late)
    assert [outcome.event for outcome in opened.late_outcomes()] == events
    assert opened.late_outcomes() == []
