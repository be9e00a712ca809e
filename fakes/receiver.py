"""A harness played by the test: a `Receiver` (waiters/receiver.py) for either policy.

    receiver = FakeReceiver(Policy.QUEUE)
    receiver.will(refused("queue full"), answer_lost(), answered())   # for the first three deliveries
    ...                                                               # run a waiter over it
    assert [written.message_id for written in receiver.written.items] == [1, 2]

Each delivery that is handed over takes the next reply of the script; after its end, every one is
answered. The fake models no harness: what a look-up finds is what was written, unless `finds` says
otherwise. For models of the real ones see `fakes/codex_app_server.py` and `fakes/monitor_host.py`.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256

import anyio

from channel.delivery_states import Event, Policy
from channel.messages import HandOver, OpenDelivery, Outcome, PendingDelivery
from fakes.recorder import Recorder
from waiters.receiver import ReceiverEnded, Unavailable, Waiter

CLOSES_AFTER_S = 60.0
"""As a Codex receiver does; a Monitor is never closed."""


@dataclass(frozen=True)
class Reply:
    """What becomes of one delivery that is handed over.

    `writes`: the text reaches the harness, so it stands in `FakeReceiver.written`. `event` is recorded,
    then `raises` is raised. `waits_for`: between the write and the event, this comes first.
    """

    event: Event | None = None
    why: str = ""
    writes: bool = True
    raises: Exception | None = None
    waits_for: anyio.Event | None = field(default=None, compare=False)


def answered() -> Reply:
    """The harness has it: `answered` of a queue, `taken` of a monitor."""
    return Reply(Event.ANSWERED)


def refused(why: str) -> Reply:
    """The harness said no, and nothing was added."""
    return Reply(Event.REFUSED_WITHOUT_EFFECT, why, writes=False)


def answer_lost(why: str = "the connection was lost before the answer") -> Reply:
    """Written, and no answer came."""
    return Reply(Event.ANSWER_LOST, why)


def not_written(why: str = "the socket was dead") -> Reply:
    """Not one byte went out; what is open is of no more use."""
    return Reply(Event.NOT_WRITTEN, why, writes=False, raises=Unavailable(why))


def no_outcome(why: str = "the transport broke") -> Reply:
    """Written, and then it fails without a word of what became of it."""
    return Reply(raises=Unavailable(why))


def harness_ended(*, writes: bool = True) -> Reply:
    """The harness dies, before or after it was given the text."""
    return Reply(writes=writes, raises=ReceiverEnded())


def crash() -> Reply:
    """A fault in the receiver's own code."""
    return Reply(writes=False, raises=RuntimeError("a fault in a receiver"))


def hanging(until: anyio.Event, then: Reply | None = None) -> Reply:
    """Written; what follows waits until the test sets `until`."""
    return replace(then or answered(), waits_for=until)


@dataclass(frozen=True)
class Written:
    """A text that reached the harness."""

    delivery_id: int
    message_id: int
    text: str
    repeats: int


class FakeReceiver:
    """Scriptable; it may be opened several times, and `written` holds the writes of all.

    `at_once`: how many deliveries go out together. `open_fails`, `not_ready`, `look_fails`: errors that the next
    openings, calls of `ready` and look-ups raise, one each. `finds`: what look-ups find of a message, by its id,
    until changed; None: they tell nothing. `while_getting_ready`: what happens during the next call of `ready`,
    between the reading of what waits and the hand-over. `steps`: what was asked, in order ("open", "ready", "write 1",
    "look 1,2", "close").
    """

    def __init__(self, policy: Policy, *, at_once: int = 1) -> None:
        self.policy = policy
        self.closes_after_s: float | None = CLOSES_AFTER_S if policy is Policy.QUEUE else None
        self.at_once = at_once
        self.remark = ""
        self.open_fails: deque[Exception] = deque()
        self.not_ready: deque[Exception] = deque()
        self.look_fails: deque[Exception] = deque()
        self.finds: dict[int, Event | None] = {}
        self.while_getting_ready: Callable[[], Awaitable[object]] | None = None
        self.written: Recorder[Written] = Recorder()
        self.steps: Recorder[str] = Recorder()
        self.is_open = False
        self._replies: deque[Reply] = deque()
        self._late: list[Outcome] = []
        self._waiter: Waiter | None = None

    def will(self, *replies: Reply) -> None:
        """Add to the script: one reply for each delivery to come."""
        self._replies.extend(replies)

    def answer_late(self, delivery_id: int, event: Event = Event.ANSWERED) -> None:
        """The answer that was given up arrives; the waiter is woken to fetch it."""
        self._late.append(Outcome(delivery_id, event, "answered late"))
        if self._waiter is not None:
            self._waiter.wake()

    @asynccontextmanager
    async def open(self, waiter: Waiter) -> AsyncIterator["FakeOpenReceiver"]:
        self.steps.add("open")
        if self.open_fails:
            raise self.open_fails.popleft()
        self._waiter, self.is_open = waiter, True
        try:
            yield FakeOpenReceiver(self, waiter)
        finally:
            self._waiter, self.is_open = None, False
            self.steps.add("close")

    def next_reply(self) -> Reply:
        """Take the next reply of the script."""
        reply = self._replies.popleft() if self._replies else answered()
        if reply.event is Event.ANSWERED and self.policy is Policy.MONITOR:
            return replace(reply, event=Event.TAKEN)
        return reply

    def look_up(self, delivery: OpenDelivery) -> Event | None:
        """What a look finds of one delivery; None: it tells nothing."""
        if delivery.message_id in self.finds:
            return self.finds[delivery.message_id]
        is_there = any(each.delivery_id == delivery.delivery_id for each in self.written.items)
        if self.policy is Policy.QUEUE:
            return Event.KEY_IN_QUEUE if is_there else Event.KEY_IN_NEITHER
        return Event.IN_TRANSCRIPT if is_there else Event.NOT_IN_TRANSCRIPT

    def take_late(self) -> list[Outcome]:
        """The late answers that nobody has fetched yet."""
        late, self._late = self._late, []
        return late


class FakeOpenReceiver:
    """An open way to the played harness. Made by `FakeReceiver.open`."""

    def __init__(self, receiver: FakeReceiver, waiter: Waiter) -> None:
        self._receiver = receiver
        self._waiter = waiter
        self._prepared: dict[int, PendingDelivery] = {}

    @property
    def remark(self) -> str:
        return self._receiver.remark

    async def ready(self) -> None:
        self._receiver.steps.add("ready")
        meanwhile, self._receiver.while_getting_ready = self._receiver.while_getting_ready, None
        if meanwhile is not None:
            await meanwhile()
        if self._receiver.not_ready:
            raise self._receiver.not_ready.popleft()

    def prepare(self, pending: Sequence[PendingDelivery]) -> list[HandOver]:
        chosen = pending[: self._receiver.at_once]
        self._prepared = {each.delivery_id: each for each in chosen}
        return [HandOver(each.delivery_id, sha256(each.message.text.encode()).hexdigest()) for each in chosen]

    async def hand_over(self, delivery_ids: Collection[int]) -> None:
        chosen = [each for each in self._prepared.values() if each.delivery_id in delivery_ids]
        for number, delivery in enumerate(chosen):
            if number:
                await self._waiter.check_lease()
            await self._give(delivery, self._receiver.next_reply())

    async def look_for(self, open_deliveries: Sequence[OpenDelivery]) -> list[Outcome]:
        self._receiver.steps.add("look " + ",".join(str(each.message_id) for each in open_deliveries))
        if self._receiver.look_fails:
            raise self._receiver.look_fails.popleft()
        found = [(each.delivery_id, self._receiver.look_up(each)) for each in open_deliveries]
        return [Outcome(delivery_id, event) for delivery_id, event in found if event is not None]

    def late_outcomes(self) -> list[Outcome]:
        return self._receiver.take_late()

    async def _give(self, delivery: PendingDelivery, reply: Reply) -> None:
        message = delivery.message
        if reply.writes:
            self._receiver.steps.add(f"write {message.message_id}")
            self._receiver.written.add(
                Written(delivery.delivery_id, message.message_id, message.text, delivery.repeats)
            )
        if reply.waits_for is not None:
            await reply.waits_for.wait()
        if reply.event is not None:
            await self._waiter.record(Outcome(delivery.delivery_id, reply.event, reply.why))
        if reply.raises is not None:
            raise reply.raises
