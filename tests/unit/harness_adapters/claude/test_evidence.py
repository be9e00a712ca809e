"""What a look at a session's transcripts says of a delivery."""

import json
from hashlib import sha256
from pathlib import Path

from channel.delivery_states import State
from channel.messages import OpenDelivery
from fakes.monitor_rules import Notification, event_text, task_notification
from harness_adapters.claude.evidence import QUEUED_MS_MAX, Shown
from harness_adapters.claude.framing import FramedDelivery, Header, encode, flush_bytes

NOW_MS = 1_796_036_510_000
WRITTEN = encode(Header(12, "hall", "ann"), "the text", "agent-channel message 12")
REPEATED = encode(Header(12, "hall", "ann", repeat=True), "the text", "agent-channel message 12")


def record(framed: FramedDelivery, *, queued: bool = False) -> str:
    text = event_text(flush_bytes(framed.parts).decode().split("\n"))
    assert text is not None
    content = task_notification("b853bhxgf", "room", Notification("event", text))
    shown = {"type": "user", "message": {"role": "user", "content": content}}
    return (
        json.dumps({"type": "queue-operation", "operation": "enqueue", "content": content} if queued else shown) + "\n"
    )


def given(framed: FramedDelivery, transcript: Path, *, offset: int = 0, elsewhere: bool = False) -> OpenDelivery:
    place = json.dumps({"transcript": str(transcript), "offset": offset})
    digest = sha256(framed.text.encode()).hexdigest()
    return OpenDelivery(7, 12, State.ACCEPTED, digest, place, NOW_MS, False, elsewhere, False, None)


def test_only_the_very_writing_counts_not_another_one_of_the_same_message(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(record(WRITTEN))
    first, again = given(WRITTEN, transcript), given(REPEATED, transcript)
    shown = Shown([first, again], None)
    assert shown.find(first) is not None
    assert shown.find(again) is None


def test_what_stood_there_before_the_hand_over_does_not_count(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(record(WRITTEN))
    after_it = given(WRITTEN, transcript, offset=transcript.stat().st_size)
    assert Shown([after_it], None).find(after_it) is None


def test_a_transcript_that_began_since_is_read_from_its_start(tmp_path: Path) -> None:
    before, since = tmp_path / "before.jsonl", tmp_path / "since.jsonl"
    before.write_text("")
    since.write_text(record(WRITTEN))
    delivery = given(WRITTEN, before)
    assert Shown([delivery], since).find(delivery) is not None


def test_what_is_queued_will_be_shown_but_not_for_ever_and_not_by_a_session_that_is_gone(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(record(WRITTEN, queued=True))
    here, elsewhere = given(WRITTEN, transcript), given(WRITTEN, transcript, elsewhere=True)
    shown = Shown([here], None)
    assert shown.find(here) is None
    assert shown.will_hold(here, NOW_MS)
    assert not shown.will_hold(here, NOW_MS + QUEUED_MS_MAX)
    assert not shown.will_hold(elsewhere, NOW_MS)


def test_no_transcript_is_not_the_same_as_an_empty_one(tmp_path: Path) -> None:
    there, gone = given(WRITTEN, tmp_path / "t.jsonl"), given(WRITTEN, tmp_path / "gone.jsonl")
    (tmp_path / "t.jsonl").write_text("")
    assert Shown([there], None).could_be_read(there)
    assert not Shown([gone], None).could_be_read(gone)
    assert Shown([gone], None).has_place(gone)
    nowhere = there._replace(place="")
    assert not Shown([nowhere], None).has_place(nowhere)
