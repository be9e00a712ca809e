"""Claude Code's Monitor as a receiver: flushes written to stdout, and the transcript as evidence.

A flush that the reader has taken is accepted, not seen: Monitor may still drop it. Seen is what stands
whole in the session's transcript.
"""

import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from channel.clock import Clock
from channel.delivery_states import Event, Policy
from channel.errors import StoreUnavailable
from channel.messages import HandOver, OpenDelivery, Outcome, PendingDelivery
from harness_adapters.claude.evidence import Shown
from harness_adapters.claude.framing import (
    FLUSH_UNITS_MAX,
    FramedDelivery,
    Header,
    Part,
    WholeDelivery,
    encode,
    flush_bytes,
)
from harness_adapters.claude.pacing import Pacing
from harness_adapters.claude.pipe import OutputPipe, ReaderGone
from harness_adapters.claude.transcript import TranscriptUnreadable, was_passed_on
from waiters import status
from waiters.age import age_in_words
from waiters.background import background_tasks
from waiters.receiver import ReceiverEnded, Waiter

BLOCKED_AFTER_S = 10.0
"""A reader takes a flush within milliseconds; one that has not for so long is reported."""

PASSED_ON_S_MAX = 5.0
"""How long the next flush waits for the last one's event, in which it would be cut. On a busy machine Monitor closed
its window of 200 ms more than a second late; an event that is not there by then was dropped, and is looked for."""

PASSED_ON_LOOK_S = 0.1

_STREAM_ENDED = "the stream ended, and it does not stand whole in the transcript"

_NO_TRANSCRIPT = "there is no transcript to look in"


class MonitorReceiver:
    """The Monitor that reads this process's stdout.

    `transcript`: the path of the transcript that the session writes now, asked at each use, since /clear
    begins another; None for a host that has none. `full_text_command`: prints the text of a message id.
    """

    policy = Policy.MONITOR
    closes_after_s: float | None = None

    def __init__(
        self,
        pipe: OutputPipe,
        pacing: Pacing,
        clock: Clock,
        transcript: Callable[[], Path | None],
        full_text_command: Callable[[int], str],
    ) -> None:
        self.pipe = pipe
        self.pacing = pacing
        self.clock = clock
        self.transcript = transcript
        self.full_text_command = full_text_command

    @asynccontextmanager
    async def open(self, waiter: Waiter) -> AsyncIterator["OpenMonitor"]:
        yield OpenMonitor(self, waiter)


class OpenMonitor:
    """One unread flush at a time, no faster than Monitor passes on."""

    remark = ""

    def __init__(self, monitor: MonitorReceiver, waiter: Waiter) -> None:
        self._pipe = monitor.pipe
        self._clock = monitor.clock
        self._monitor = monitor
        self._waiter = waiter
        self._prepared: dict[int, FramedDelivery] = {}
        self._prepared_place = ""
        """Where the transcript ended before the hand-over. Of the first flush too, which follows at once: after a
        /clear between the two its event would be waited for in vain, for PASSED_ON_S_MAX."""
        self._is_blocked = False
        self._last_flush: _Flush | None = None
        """Of which it is not known that its event was made."""
        self._transcript_tells: bool | None = None
        """Whether the transcript holds what Monitor passes on; None until the first flush was looked for."""

    async def ready(self) -> None:
        """Monitor takes a flush now. What comes meanwhile goes out with it."""
        await self._wait_for_pace()
        if self._pipe.is_dead():
            raise ReceiverEnded

    def prepare(self, pending: Sequence[PendingDelivery]) -> list[HandOver]:
        """As many whole deliveries as fit into one flush; else the first alone, in parts."""
        self._prepared_place = self._place()
        self._prepared = {}
        units = 0
        for delivery in pending:
            framed = self._frame(delivery)
            units += sum(part.units for part in framed.parts)
            if self._prepared and units > FLUSH_UNITS_MAX:
                break
            self._prepared[delivery.delivery_id] = framed
        return [
            HandOver(delivery_id, sha256(framed.text.encode()).hexdigest(), self._prepared_place, _remark(framed))
            for delivery_id, framed in self._prepared.items()
        ]

    async def hand_over(self, delivery_ids: Collection[int]) -> None:
        framed = {each: self._prepared[each] for each in self._prepared if each in delivery_ids}
        if self._pipe.is_dead():
            await self._waiter.record(*(Outcome(each, Event.NOT_WRITTEN, "the reader was gone") for each in framed))
            raise ReceiverEnded
        try:
            await self._write(framed)
        except ReaderGone as gone:
            raise ReceiverEnded from gone

    async def look_for(self, open_deliveries: Sequence[OpenDelivery]) -> list[Outcome]:
        """What the transcripts hold: that of the hand-over from its offset on, and the present one."""
        shown = Shown(open_deliveries, self._monitor.transcript())
        outcomes = (_outcome(delivery, shown, self._clock.now_ms()) for delivery in open_deliveries)
        return [outcome for outcome in outcomes if outcome is not None]

    def late_outcomes(self) -> list[Outcome]:
        """Monitor answers nothing."""
        return []

    async def _write(self, framed: dict[int, FramedDelivery]) -> None:
        """One flush for several short deliveries, or one for each part of a long one."""
        parts = [part for each in framed.values() for part in each.parts]
        place = self._prepared_place
        for number, flush in enumerate([parts] if len(framed) > 1 else [[part] for part in parts]):
            if number:
                if self._waiter.is_stopping:
                    return
                await self._wait_for_pace()
                await self._waiter.check_lease()
                place = self._place()
            await self._flush(flush, place)
        await self._waiter.record(
            *(Outcome(delivery_id, Event.TAKEN, _remark(each)) for delivery_id, each in framed.items())
        )

    async def _flush(self, parts: Sequence[Part], place: str) -> None:
        self._last_flush = _Flush(place, parts[-1].lines[0])
        await self._pipe.write(flush_bytes(parts))
        self._monitor.pacing.flushed(self._clock.monotonic())
        await self._wait_taken()
        self._monitor.pacing.taken(self._clock.monotonic())

    async def _wait_taken(self) -> None:
        """Wait however long the reader takes, and say so if it does not read."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._report_if_blocked)
            await self._pipe.wait_taken()
        if self._is_blocked:
            self._is_blocked = False
            await self._waiter.say("")

    async def _report_if_blocked(self) -> None:
        since_ms = self._clock.now_ms()
        await self._clock.sleep(BLOCKED_AFTER_S)
        self._is_blocked = True
        with suppress(StoreUnavailable):  # a word for others; the next hand-over meets the trouble itself
            await self._waiter.say(f"{status.READER_BLOCKED}: the harness has read nothing since {status.at(since_ms)}")

    async def _wait_for_pace(self) -> None:
        wait_s = self._monitor.pacing.next_flush_at() - self._clock.monotonic()
        if wait_s > 0:
            await self._clock.sleep(wait_s)
        await self._wait_passed_on()

    async def _wait_passed_on(self) -> None:
        """Wait until Monitor has made its event of the last flush, where the transcript tells."""
        flush, self._last_flush = self._last_flush, None
        if flush is None or not flush.place or not self._monitor.pacing.keeps_apart or self._transcript_tells is False:
            return
        place = json.loads(flush.place)
        until = self._clock.monotonic() + PASSED_ON_S_MAX
        while self._clock.monotonic() < until and not self._pipe.is_dead():
            try:
                if was_passed_on(Path(place["transcript"]), place["offset"], flush.last_header):
                    self._transcript_tells = True
                    return
            except TranscriptUnreadable:
                return
            await self._clock.sleep(PASSED_ON_LOOK_S)
        if self._transcript_tells is None:
            self._transcript_tells = False

    def _frame(self, delivery: PendingDelivery) -> FramedDelivery:
        message = delivery.message
        header = Header(
            message_id=message.message_id,
            room=message.room,
            sender=message.sender,
            age=age_in_words(self._clock.now_ms() - message.created_at_ms),
            reply_to=message.reply_to,
            repeat=delivery.repeats > 0,
        )
        return encode(header, message.text, self._monitor.full_text_command(message.message_id))

    def _place(self) -> str:
        path = self._monitor.transcript()
        if path is None:
            return ""
        try:
            offset = path.stat().st_size
        except OSError:
            offset = 0
        return json.dumps({"transcript": str(path), "offset": offset})


class _Flush(NamedTuple):
    """`place`: where the transcript ended before it, as in a hand-over; `last_header`: of its last part."""

    place: str
    last_header: str


def _outcome(delivery: OpenDelivery, shown: Shown, now_ms: int) -> Outcome | None:
    """None: nothing is known yet; it is looked for again."""
    found = shown.find(delivery)
    if found is not None:
        return Outcome(delivery.delivery_id, Event.IN_TRANSCRIPT, _remark(found))
    if not delivery.of_former_term:
        return None if shown.has_place(delivery) else Outcome(delivery.delivery_id, Event.NO_TRANSCRIPT, _NO_TRANSCRIPT)
    if shown.will_hold(delivery, now_ms):
        return None
    if delivery.role_is_replaced:
        return Outcome(delivery.delivery_id, Event.RECIPIENT_REPLACED, "may have been shown to the session before")
    if not shown.could_be_read(delivery):
        return Outcome(delivery.delivery_id, Event.NO_TRANSCRIPT, _NO_TRANSCRIPT)
    return Outcome(delivery.delivery_id, Event.NOT_IN_TRANSCRIPT, _STREAM_ENDED)


def _remark(delivery: FramedDelivery | WholeDelivery) -> str:
    return "shortened" if delivery.shortened else ""
