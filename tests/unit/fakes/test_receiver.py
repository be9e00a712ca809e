"""The played harness, driven as a waiter drives it but without one."""

import anyio
import pytest

from channel.delivery_states import Event, Policy, State
from channel.messages import Message, OpenDelivery, Outcome, PendingDelivery
from fakes.receiver import FakeReceiver, answer_lost, crash, hanging, harness_ended, not_written, refused
from waiters.receiver import NotNow, ReceiverEnded, Unavailable

WAIT_S = 5


class Notes:
    """A waiter that only takes notes."""

    is_stopping = False

    def __init__(self) -> None:
        self.outcomes: list[tuple[int, Event]] = []
        self.lease_checks = 0
        self.wakes = 0

    async def say(self, trouble: str) -> None: ...

    async def record(self, *outcomes: Outcome) -> None:
        self.outcomes += [(each.delivery_id, each.event) for each in outcomes]

    async def check_lease(self) -> None:
        self.lease_checks += 1

    def wake(self) -> None:
        self.wakes += 1


def pending(*numbers: int) -> list[PendingDelivery]:
    return [PendingDelivery(n, Message(n, "hall", "boss", f"text {n}", None, 0), "worker", 0) for n in numbers]


def open_delivery(number: int) -> OpenDelivery:
    return OpenDelivery(number, number, State.ACCEPTED, "", "", 0, False, False, False, None)


async def give(receiver: FakeReceiver, *numbers: int) -> Notes:
    """Hand over deliveries one session long, `at_once` at a time."""
    notes = Notes()
    async with receiver.open(notes) as session:
        left = pending(*numbers)
        while left:
            await session.ready()
            prepared = {each.delivery_id for each in session.prepare(left)}
            await session.hand_over(prepared)
            left = [each for each in left if each.delivery_id not in prepared]
    return notes


@pytest.mark.parametrize(("policy", "event"), [(Policy.QUEUE, Event.ANSWERED), (Policy.MONITOR, Event.TAKEN)])
async def test_without_a_script_everything_is_taken(policy: Policy, event: Event):
    receiver = FakeReceiver(policy)

    notes = await give(receiver, 1, 2)

    assert notes.outcomes == [(1, event), (2, event)]
    assert [written.text for written in receiver.written.items] == ["text 1", "text 2"]
    assert receiver.steps.items == ["open", "ready", "write 1", "ready", "write 2", "close"]


async def test_each_delivery_takes_the_next_reply_and_only_what_is_written_is_kept():
    receiver = FakeReceiver(Policy.QUEUE)
    receiver.will(refused("queue full"), answer_lost())

    notes = await give(receiver, 1, 2, 3)

    assert notes.outcomes == [
        (1, Event.REFUSED_WITHOUT_EFFECT),
        (2, Event.ANSWER_LOST),
        (3, Event.ANSWERED),
    ]
    assert [written.message_id for written in receiver.written.items] == [2, 3]


@pytest.mark.parametrize(
    ("reply", "error", "outcomes", "writes"),
    [
        (not_written(), Unavailable, [(1, Event.NOT_WRITTEN)], 0),
        (harness_ended(), ReceiverEnded, [], 1),
        (harness_ended(writes=False), ReceiverEnded, [], 0),
        (crash(), RuntimeError, [], 0),
    ],
)
async def test_what_ends_a_session_is_raised_out_of_it(reply, error, outcomes, writes):
    receiver, notes = FakeReceiver(Policy.QUEUE), Notes()
    receiver.will(reply)

    with pytest.raises(error):
        async with receiver.open(notes) as session:
            session.prepare(pending(1))
            await session.hand_over({1})

    assert (notes.outcomes, len(receiver.written.items)) == (outcomes, writes)
    assert not receiver.is_open


async def test_a_hanging_one_is_written_and_waits_for_the_test():
    receiver, released = FakeReceiver(Policy.QUEUE), anyio.Event()
    receiver.will(hanging(released, answer_lost()))

    async def release() -> None:
        await receiver.written.next()
        released.set()

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release)
            notes = await give(receiver, 1)
    assert notes.outcomes == [(1, Event.ANSWER_LOST)]


async def test_openings_readiness_and_looks_fail_as_scripted():
    receiver, notes = FakeReceiver(Policy.QUEUE), Notes()
    receiver.open_fails.append(Unavailable("no codex"))
    receiver.not_ready.append(NotNow("queue full"))
    receiver.look_fails.append(Unavailable("it has ended"))

    with pytest.raises(Unavailable, match="no codex"):
        async with receiver.open(notes):
            pass
    async with receiver.open(notes) as session:
        with pytest.raises(NotNow, match="queue full"):
            await session.ready()
        with pytest.raises(Unavailable, match="it has ended"):
            await session.look_for([open_delivery(1)])
        await session.ready()
        assert await session.look_for([]) == []


@pytest.mark.parametrize(
    ("policy", "there", "absent"),
    [
        (Policy.QUEUE, Event.KEY_IN_QUEUE, Event.KEY_IN_NEITHER),
        (Policy.MONITOR, Event.IN_TRANSCRIPT, Event.NOT_IN_TRANSCRIPT),
    ],
)
async def test_a_look_finds_what_was_written_unless_the_test_says_otherwise(policy, there, absent):
    receiver = FakeReceiver(policy)
    await give(receiver, 1, 2, 3)
    receiver.finds = {2: absent, 3: None}

    async with receiver.open(Notes()) as session:
        found = await session.look_for([open_delivery(number) for number in (1, 2, 3, 4)])

    assert [(each.delivery_id, each.event) for each in found] == [(1, there), (2, absent), (4, absent)]


async def test_a_late_answer_wakes_the_waiter_and_is_had_once():
    receiver, notes = FakeReceiver(Policy.QUEUE), Notes()
    async with receiver.open(notes) as session:
        receiver.answer_late(7)
        assert notes.wakes == 1
        assert [each.delivery_id for each in session.late_outcomes()] == [7]
        assert session.late_outcomes() == []


async def test_of_what_goes_out_together_the_lease_is_checked_before_each_but_the_first():
    receiver = FakeReceiver(Policy.MONITOR, at_once=3)

    notes = await give(receiver, 1, 2, 3, 4)

    assert notes.lease_checks == 2
    assert receiver.steps.items == ["open", "ready", "write 1", "write 2", "write 3", "ready", "write 4", "close"]
