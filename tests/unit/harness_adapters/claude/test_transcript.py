"""Deliveries in transcripts: the records are Claude Code's (tests/data/claude holds real ones)."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from fakes.monitor_rules import Notification, event_text, task_notification
from harness_adapters.claude.framing import FramedDelivery, Header, Part, encode, flush_bytes
from harness_adapters.claude.transcript import TranscriptUnreadable, find_deliveries

REAL = Path(__file__).parents[3] / "data" / "claude"
COMMAND = "agent-channel message 12 --page 1"

SHORT = encode(Header(12, "review", "alice"), "if a < b && c:\n\n    return '&lt;'", COMMAND)
LONG = encode(Header(13, "review", "alice"), "x" * 7_000, COMMAND)


def notification(*parts: Part, task: str = "b853bhxgf") -> str:
    text = event_text(flush_bytes(parts).decode().split("\n"))
    assert text is not None
    return task_notification(task, "room", Notification("event", text))


def user(text: str) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, "origin": {"kind": "task-notification"}}


def attachment(text: str) -> dict[str, object]:
    return {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": text},
        "rendered": [{"content": text}],
    }


def enqueue(text: str) -> dict[str, object]:
    return {"type": "queue-operation", "operation": "enqueue", "content": text}


def remove(text: str) -> dict[str, object]:
    return {"type": "queue-operation", "operation": "remove", "content": text}


def request_blob(text: str) -> dict[str, object]:
    return {"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def found(tmp_path: Path, records: Iterable[object], *wanted: FramedDelivery, offset: int = 0) -> list[str]:
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records))
    ids = [int(framed.text.split(" ")[0]) for framed in wanted or (SHORT, LONG)]
    return [whole.text for whole in find_deliveries(path, offset, ids)]


@pytest.mark.parametrize("record", [user, attachment])
def test_a_delivery_put_before_the_model_is_found_exactly_as_written(tmp_path: Path, record: type[dict]) -> None:  # type: ignore[type-arg]
    assert found(tmp_path, [record(notification(*SHORT.parts))]) == [SHORT.text]


@pytest.mark.parametrize("record", [enqueue, remove, request_blob])
def test_a_delivery_that_is_only_queued_is_not_found(tmp_path: Path, record: type[dict]) -> None:  # type: ignore[type-arg]
    assert found(tmp_path, [record(notification(*SHORT.parts))]) == []


def test_a_long_delivery_is_found_when_its_last_part_was_shown(tmp_path: Path) -> None:
    shown = [user(notification(part)) for part in LONG.parts]

    assert len(shown) == 3
    assert found(tmp_path, shown[:2]) == []
    assert found(tmp_path, [shown[0], shown[2]]) == []
    assert found(tmp_path, shown) == [LONG.text]


def test_several_deliveries_of_one_event_are_found_apart(tmp_path: Path) -> None:
    second = encode(Header(14, "review", "bob"), "two", COMMAND)
    third = encode(Header(15, "review", "bob"), "three", COMMAND)
    records = [user(notification(*SHORT.parts, *second.parts, *third.parts))]

    assert found(tmp_path, records, SHORT, third) == [SHORT.text, third.text]


def test_a_flush_that_monitor_made_two_events_of_is_found(tmp_path: Path) -> None:
    header, *body = LONG.parts[0].lines
    events = [Part((header, *body[:2])), Part(tuple(body[2:])), *LONG.parts[1:]]

    assert found(tmp_path, [user(notification(event)) for event in events]) == [LONG.text]


def test_another_monitor_between_the_parts_changes_nothing(tmp_path: Path) -> None:
    other = user(notification(Part(("|a line with a mark", "13 review mallory part=2/3", "|y")), task="other"))
    shown = [user(notification(part)) for part in LONG.parts]

    assert found(tmp_path, [shown[0], other, shown[1], other, shown[2], other]) == [LONG.text]


def test_parts_that_two_streamers_wrote_do_not_make_a_whole(tmp_path: Path) -> None:
    first, *rest = LONG.parts

    assert (
        found(
            tmp_path,
            [
                user(notification(first)),
                user(notification(*rest[:1], task="b2")),
                user(notification(*rest[1:], task="b2")),
            ],
        )
        == []
    )


def test_both_writings_of_a_repeated_message_are_found(tmp_path: Path) -> None:
    repeat = encode(Header(12, "review", "alice", repeat=True), "again", COMMAND)

    assert found(tmp_path, [user(notification(*SHORT.parts)), user(notification(*repeat.parts))]) == [
        SHORT.text,
        repeat.text,
    ]


def test_a_line_that_monitor_cut_is_found_as_other_text_than_was_written(tmp_path: Path) -> None:
    too_long = Part(("12 review alice", "|" + "x" * 600))

    assert found(tmp_path, [user(notification(too_long))], SHORT) == [
        "12 review alice\n|" + "x" * 499 + "...(truncated)"
    ]


def test_what_stood_there_before_the_hand_over_is_left_out(tmp_path: Path) -> None:
    old = user(notification(*SHORT.parts))
    size = len(json.dumps(old, separators=(",", ":"), ensure_ascii=False).encode()) + 1

    assert found(tmp_path, [old, old], offset=size) == [SHORT.text]
    assert found(tmp_path, [old, old], offset=size + 5) == []
    assert found(tmp_path, [old], offset=10 * size) == [SHORT.text]


def test_a_record_that_is_being_written_is_left_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    record = json.dumps(user(notification(*SHORT.parts)))
    for written in (record[:200], record):
        path.write_text(written)
        assert find_deliveries(path, 0, [12]) == []
    path.write_text(record + "\n")
    assert [whole.text for whole in find_deliveries(path, 0, [12])] == [SHORT.text]


def test_records_of_other_forms_are_passed_over(tmp_path: Path) -> None:
    text = notification(*SHORT.parts)
    records: list[object] = [
        text,
        [text],
        None,
        {"type": "user", "message": text},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": text}, text, {"type": "text"}]}},
        {"type": "attachment", "attachment": {"type": "other", "prompt": text}},
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": [text]}},
        {"type": "assistant", "message": {"content": text}},
        {"type": "user", "message": {"content": "x" * 3_000_000 + text}},
        user("<task-notification>\n<task-id>a</task-id>\n<summary>no event</summary>\n</task-notification>"),
        {"type": "user", "message": {"content": [{"type": "text", "text": text}]}},
    ]

    assert found(tmp_path, records) == [SHORT.text]


def test_a_line_that_is_no_record_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(
        b"<task-notification> {\n\xff<task-notification>\n\n"
        + b'["<task-notification>", ' * 10_000
        + b"\n"
        + json.dumps(user(notification(*SHORT.parts))).encode()
        + b"\n"
    )

    assert [whole.text for whole in find_deliveries(path, 0, [12])] == [SHORT.text]


@pytest.mark.parametrize("place", ["absent", "folder"])
def test_without_a_transcript_nothing_is_said(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(TranscriptUnreadable, match=place):
        find_deliveries(tmp_path / place, 0, [12])


@pytest.mark.parametrize("name", ["transcript_idle.jsonl", "transcript_busy.jsonl"])
def test_a_delivery_in_a_real_transcript_is_found_where_its_events_stand(tmp_path: Path, name: str) -> None:
    """The two events of the recording, with a delivery of two parts in their place."""
    framed = encode(Header(12, "review", "alice"), "a < b\n" * 600, COMMAND)
    assert len(framed.parts) == 2
    recorded = (REAL / name).read_text("utf-8")
    for event, part in zip(('first <b> & "q"\ntwo', "second"), framed.parts, strict=True):
        escaped = (
            task_notification("", "", Notification("event", event)).partition("<event>")[2].partition("</event>")[0]
        )
        written = task_notification("", "", Notification("event", "\n".join(part.lines)))
        replacement = written.partition("<event>")[2].partition("</event>")[0]
        old, new = (json.dumps(f"<event>{text}</event>", ensure_ascii=False)[1:-1] for text in (escaped, replacement))
        assert recorded.count(old) >= 3
        recorded = recorded.replace(old, new)
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text(recorded, "utf-8")

    assert [whole.text for whole in find_deliveries(transcript, 0, [12])] == [framed.text]


def test_what_is_queued_but_not_yet_shown_is_told_apart(tmp_path: Path) -> None:
    """Ours: an event in the session's queue will be shown, so it is not printed again yet."""
    transcript = tmp_path / "t.jsonl"
    notification = (
        '<task-notification>\n<task-id>b1</task-id>\n<summary>Monitor event: "m"</summary>\n'
        "<event>7 room alice\n|hello</event>\n</task-notification>"
    )
    record = {"type": "queue-operation", "operation": "enqueue", "content": notification}
    transcript.write_text(json.dumps(record) + "\n")

    assert find_deliveries(transcript, 0, {7}) == []
    assert [whole.text for whole in find_deliveries(transcript, 0, {7}, queued=True)] == ["7 room alice\n|hello"]
