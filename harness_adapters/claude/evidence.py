"""Where a Claude Code session shows what its Monitor read, and what one look there says. It only reads."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from channel.messages import OpenDelivery
from harness_adapters.claude.framing import WholeDelivery
from harness_adapters.claude.transcript import TranscriptUnreadable, find_deliveries

QUEUED_MS_MAX = 600_000
"""An event in a session's queue is shown after the tool call or turn that runs; longer than this, it is repeated."""

_Writing = tuple[int, str]
"""A message's id and the hash of one writing of it, its header included."""


class Shown:
    """What one look found in the transcripts of some deliveries."""

    def __init__(self, deliveries: Sequence[OpenDelivery], present: Path | None) -> None:
        wanted: dict[Path, tuple[int, set[int]]] = {}
        for delivery in deliveries:
            for path, offset in transcripts(delivery, present):
                from_offset, ids = wanted.get(path, (offset, set()))
                wanted[path] = (min(from_offset, offset), ids | {delivery.message_id})
        self._placed = {message_id for _, ids in wanted.values() for message_id in ids}
        self._shown: dict[_Writing, WholeDelivery] = {}
        self._queued: dict[_Writing, WholeDelivery] = {}
        self._readable: set[int] = set()
        for path, (offset, ids) in wanted.items():
            try:
                self._shown |= _writings(find_deliveries(path, offset, ids))
                self._queued |= _writings(find_deliveries(path, offset, ids, queued=True))
            except TranscriptUnreadable:
                continue
            self._readable |= ids

    def find(self, delivery: OpenDelivery) -> WholeDelivery | None:
        """What was put before the model of it: whole, exactly as it was written."""
        return self._shown.get((delivery.message_id, delivery.text_sha256))

    def will_hold(self, delivery: OpenDelivery, now_ms: int) -> bool:
        """Whether the session has it in its queue of events, and shows it at the end of what it does now."""
        in_queue = (delivery.message_id, delivery.text_sha256) in self._queued
        return in_queue and not delivery.elsewhere and now_ms - delivery.handed_over_at_ms < QUEUED_MS_MAX

    def has_place(self, delivery: OpenDelivery) -> bool:
        """Whether there is a transcript to look in at all, now or later."""
        return delivery.message_id in self._placed

    def could_be_read(self, delivery: OpenDelivery) -> bool:
        return delivery.message_id in self._readable


def transcripts(delivery: OpenDelivery, present: Path | None) -> list[tuple[Path, int]]:
    """Where a delivery may stand, each with the offset to read from; /clear begins another transcript."""
    found = []
    if delivery.place:
        place = json.loads(delivery.place)
        found.append((Path(place["transcript"]), int(place["offset"])))
    if present is not None and present not in [path for path, _ in found]:
        found.append((present, 0))
    return found


def _writings(wholes: Sequence[WholeDelivery]) -> dict[_Writing, WholeDelivery]:
    return {(whole.header.message_id, sha256(whole.text.encode()).hexdigest()): whole for whole in wholes}
