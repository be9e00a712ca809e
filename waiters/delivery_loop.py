"""One waiter: next delivery, hand-over, outcome, look-up, rest; for one address, under one lease.

The order of a delivery's steps is what the product's promise rests on:
the receiver is open -> the hand-over is committed -> the receiver writes -> the outcome is recorded.
A death between any two of them leaves a delivery that is looked for, and is never handed over blindly.
"""

from collections.abc import Sequence

import anyio

from channel.clock import Clock
from channel.deliveries import Deliveries
from channel.delivery_states import OF_ONE_HAND_OVER, Event
from channel.fault_places import Place, passing
from channel.leases import Lease, Leases
from channel.look_schedule import LOOK_S_MAX
from channel.messages import OpenDelivery, Outcome, PendingDelivery
from waiters import reconciliation, status
from waiters.receiver import NotNow, OpenReceiver, Receiver, Unavailable
from waiters.retries import BackOff
from waiters.timers import is_set_within

IDLE_S_OF_ANOTHERS = 3.0
"""How long a receiver of another process's thread is kept open without work: a burst of messages goes over one,
and the thread's own server, which knows it best, gets the lease soon after."""

_NOT_GIVEN = frozenset({Event.REFUSED_WITHOUT_EFFECT, Event.NOT_WRITTEN})
_GIVEN = frozenset({Event.ANSWERED, Event.TAKEN})


class DeliveryLoop:
    """Serves one address. It is the `Waiter` of its receiver.

    `first_attempt` is set once its receiver was opened, or could not be.
    """

    def __init__(
        self,
        lease: Lease,
        receiver: Receiver,
        deliveries: Deliveries,
        leases: Leases,
        clock: Clock,
        first_attempt: anyio.Event | None = None,
    ) -> None:
        self.lease = lease
        self.first_attempt = first_attempt or anyio.Event()
        self._receiver = receiver
        self._deliveries = deliveries
        self._leases = leases
        self._clock = clock
        self._woken = anyio.Event()
        self._stopping = False
        self._settled = False
        self._may_have_inherited = False
        """Somebody woke this waiter: its session may hold a role since that a dead one held."""
        self._inherited: set[int] = set()
        """What was given elsewhere and has been looked for from here: once at sight, then when its time comes."""
        self._said: str | None = None
        """None: this lease has said nothing yet, and its row says ""."""
        self._trouble = ""
        self._remark = ""
        self._was_refused = False
        """The harness takes nothing now: asked again after each rest, so that what is said of it stays true."""
        self._back_off = BackOff()
        self._rest_until = clock.monotonic()

    def wake(self) -> None:
        """There may be something new to do."""
        self._woken.set()

    def stop(self) -> None:
        """Begin no new hand-over; `run` returns after what is being written."""
        self._stopping = True
        self._woken.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    async def run(self, *, until_idle: bool = False) -> None:
        """Serve until stopped; with `until_idle`, until there is nothing to do for now.

        The receiver is opened at once, so that a harness that can't be reached is known at once.
        Raises LeaseLost, ReceiverEnded, SchemaTooNew, StoreUnavailable.
        """
        while not self._stopping:
            try:
                async with self._receiver.open(self) as opened:
                    self._remark = opened.remark
                    await self._ask_whether_ready(opened)
                    self.first_attempt.set()
                    await self._serve(opened, IDLE_S_OF_ANOTHERS if until_idle else self._receiver.closes_after_s)
            except Unavailable as unavailable:
                await self._rest(unavailable.detail)
            self.first_attempt.set()
            while not self._stopping and not await self._has_work():
                if until_idle and not self._is_resting():
                    return
                await self._wait(None, for_looks=not self._is_resting())

    async def say(self, trouble: str) -> None:
        self._trouble = trouble
        detail = status.compose(trouble or self._remark, await self._deliveries.troubled(self.lease.address))
        if detail != (self._said or ""):
            await self._leases.set_detail(self.lease, detail)
        self._said = detail

    async def record(self, *outcomes: Outcome) -> None:
        await self._record([self._of_this_term(outcome) for outcome in outcomes])
        for outcome in outcomes:
            if outcome.event in _GIVEN:
                self._back_off.succeeded()
            elif outcome.event in _NOT_GIVEN:
                await self._rest(outcome.why)

    async def check_lease(self) -> None:
        await self._leases.check(self.lease)

    async def _serve(self, opened: OpenReceiver, closes_after_s: float | None) -> None:
        """Until stopped, or without work for `closes_after_s`; being woken for nothing does not prolong it."""
        await self._settle(opened)
        idle_since = self._clock.monotonic()
        while not self._stopping:
            if await self._work(opened):
                idle_since = self._clock.monotonic()
                continue
            idle_s = self._clock.monotonic() - idle_since
            if not await self._wait(None if closes_after_s is None else max(0.0, closes_after_s - idle_s)):
                return

    async def _settle(self, opened: OpenReceiver) -> None:
        """What broke off, in this waiter or in one before it, is recorded; what that one left is looked for first."""
        await self._deliveries.settle_broken_off(self.lease)
        if not self._settled:
            await self._look(opened, all_of_former_terms=True)
            self._settled = True

    async def _work(self, opened: OpenReceiver) -> bool:
        """Hand over what goes out at once, then look for what is due; False if there was neither.

        Both in turn: a stream of messages that never ends must not put off all looking.
        """
        pending = None
        if self._may_have_inherited or self._woken.is_set():
            self._may_have_inherited = False
            self._woken = anyio.Event()
            pending = await self._look_when_woken(opened)  # before what came later is handed over
        delivered = await self._deliver(opened, pending)
        await self._record(opened.late_outcomes())
        if self._stopping or not await self._look_is_due():
            return delivered
        await self._look(opened)
        return True

    async def _look_when_woken(self, opened: OpenReceiver) -> Sequence[PendingDelivery] | None:
        """What waits, if it was read too and nothing was looked for since: time counts then."""
        if self._is_resting():
            await self._look(opened)
            return None
        open_deliveries, pending = await self._deliveries.open_and_pending(self.lease, self._receiver.policy)
        return None if await self._look_for(opened, open_deliveries) else pending

    async def _deliver(self, opened: OpenReceiver, pending: Sequence[PendingDelivery] | None) -> bool:
        """Hand over what goes out at once (`pending`: what waits; None: not read yet); False if nothing can be now."""
        if self._is_resting():
            return False
        if pending is None:
            pending = await self._deliveries.next_pending(self.lease.address)
        if not pending and not self._was_refused:
            return False
        if not await self._ask_whether_ready(opened) or not pending or self._stopping:
            return False
        prepared = opened.prepare(pending)
        recorded = await self._deliveries.record_hand_over(self.lease, self._receiver.policy, prepared)
        if recorded:
            await opened.hand_over(recorded)
        return True

    async def _ask_whether_ready(self, opened: OpenReceiver) -> bool:
        try:
            await opened.ready()
        except NotNow as not_now:
            self._was_refused = True
            await self._rest(not_now.detail)
            return False
        self._was_refused = False
        if self._trouble or self._said is None:
            await self.say("")
        return True

    async def _look(self, opened: OpenReceiver, *, all_of_former_terms: bool = False) -> None:
        open_deliveries = await self._deliveries.open_at(self.lease, self._receiver.policy)
        await self._look_for(opened, open_deliveries, all_of_former_terms=all_of_former_terms)

    async def _look_for(
        self, opened: OpenReceiver, open_deliveries: Sequence[OpenDelivery], *, all_of_former_terms: bool = False
    ) -> bool:
        """Look for those that are due, and for what was given elsewhere once at sight; whether there were any."""
        at_once = {
            each.delivery_id
            for each in open_deliveries
            if (all_of_former_terms and each.of_former_term)
            or (each.elsewhere and each.delivery_id not in self._inherited)
        }
        wanted = reconciliation.to_look_for(open_deliveries, self._clock.now_ms(), at_once)
        if not wanted:
            return False
        withdrawn = await self._deliveries.withdrawn_at(self.lease.address)
        outcomes = await opened.look_for([*wanted, *withdrawn])
        self._inherited |= {each.delivery_id for each in wanted if each.elsewhere}
        passing(Place.LOOKED)
        await self._record(outcomes)
        told = {outcome.delivery_id for outcome in outcomes}
        await self._deliveries.record_silent_look([each.delivery_id for each in wanted if each.delivery_id not in told])
        return True

    def _of_this_term(self, outcome: Outcome) -> Outcome:
        return outcome._replace(term=self.lease.term) if outcome.event in OF_ONE_HAND_OVER else outcome

    async def _record(self, outcomes: Sequence[Outcome]) -> None:
        recorded = await self._deliveries.record(outcomes)
        if any(each.changed for each in recorded):
            await self.say(self._trouble)

    async def _rest(self, trouble: str) -> None:
        """Nothing is handed over for a growing while, and what waits says why."""
        self._rest_until = self._clock.monotonic() + self._back_off.after_failure_s()
        await self._deliveries.note_waiting(self.lease.address, trouble)
        await self.say(trouble)

    def _is_resting(self) -> bool:
        return self._clock.monotonic() < self._rest_until

    async def _has_work(self) -> bool:
        if self._is_resting():
            return False
        return bool(await self._deliveries.next_pending(self.lease.address)) or await self._look_is_due()

    async def _look_is_due(self) -> bool:
        return reconciliation.is_due(await self._deliveries.next_look_at_ms(self.lease.address), self._clock.now_ms())

    async def _wait(self, limit_s: float | None, *, for_looks: bool = True) -> bool:
        """Until woken, a rest is over or (`for_looks`) a look falls due: True; or for `limit_s`: False."""
        waits = [] if limit_s is None else [(limit_s, False)]
        if self._is_resting():
            waits.append((self._rest_until - self._clock.monotonic(), True))
        look_at_ms = await self._deliveries.next_look_at_ms(self.lease.address) if for_looks else None
        if look_at_ms is not None:
            in_s = (look_at_ms - self._clock.now_ms()) / 1_000
            waits.append((min(max(in_s, 0.0), float(LOOK_S_MAX)), True))
        timeout_s, is_work = min(waits, default=(None, True))
        woken = await is_set_within(self._woken, self._clock, timeout_s)
        if woken:
            self._woken = anyio.Event()
            self._may_have_inherited = True
        return woken or is_work
