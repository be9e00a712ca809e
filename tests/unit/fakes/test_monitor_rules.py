"""Monitor's rules as Claude Code 2.1.332 was measured to have them: all of them the vendor's."""

from collections.abc import Iterable

import pytest

from fakes.monitor_rules import EventStream, Notification, TokenBucket, event_text, shown_line, task_notification

ARMED_AT = 1_000.0


def told(stream: EventStream, lines: Iterable[tuple[float, str]]) -> list[Notification]:
    """What the session is told of lines written at these times, each window closed at its end."""
    notifications: list[Notification] = []
    for time, line in lines:
        due_at = stream.due_at()
        if due_at is not None and due_at <= time:
            notifications += stream.collect(due_at)
        stream.feed(line.encode() + b"\n", time)
    due_at = stream.due_at()
    return notifications if due_at is None else [*notifications, *stream.collect(due_at)]


def every(seconds: float, count: int) -> list[tuple[float, str]]:
    return [(ARMED_AT + number * seconds, f"ev{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("x" * 500, "x" * 500),
        ("x" * 501, "x" * 500 + "...(truncated)"),
        ("x" * 499 + "𝒳", "x" * 499 + "\ufffd...(truncated)"),
        ("𝒳" * 250, "𝒳" * 250),
        ("  both ends \t", "both ends"),
        ("\ufeff\u00a0\u3000kept inside\u2028", "kept inside"),
        ("\u200bnot a blank\u200d", "\u200bnot a blank\u200d"),
        ("\x1b[31m\x00\x85", "\x1b[31m\x00\x85"),
        ("   ", None),
        ("", None),
        ('<claude-code-hint v="1" type="plugin" value="a@b" />', None),
    ],
)
def test_a_line_is_trimmed_dropped_or_cut(line: str, shown: str | None) -> None:
    assert shown_line(line) == shown


def test_an_event_is_cut_after_3000_units() -> None:
    text = event_text(["y" * 483] * 10)

    assert text is not None
    assert text == "\n".join(["y" * 483] * 10)[:3_000] + "\n...(truncated)"
    assert text.count("y" * 483) == 6
    assert event_text(["", " "]) is None


def test_lines_of_one_window_are_one_event() -> None:
    stream = EventStream(ARMED_AT)

    assert told(stream, [(ARMED_AT, "a"), (ARMED_AT + 0.19, "b"), (ARMED_AT + 0.21, "c")]) == [
        Notification("event", "a\nb"),
        Notification("event", "c"),
    ]


def test_text_without_a_newline_waits_for_its_end() -> None:
    stream = EventStream(ARMED_AT)
    stream.feed(b"ha" + "é".encode()[:1], ARMED_AT)
    assert stream.due_at() is None

    stream.feed("é".encode()[1:] + b"\nrest", ARMED_AT + 5)
    assert stream.due_at() == ARMED_AT + 5.2
    assert stream.collect(ARMED_AT + 5.2) == [Notification("event", "haé")]
    assert stream.end(0, ARMED_AT + 6) == [Notification("completed", "rest", 0)]


def test_the_bucket_gets_a_token_at_each_whole_step_since_its_start() -> None:
    bucket = TokenBucket(ARMED_AT)
    assert [bucket.take(ARMED_AT + 1.9) for _ in range(11)] == [True] * 10 + [False]

    assert bucket.take(ARMED_AT + 2.0)
    assert not bucket.take(ARMED_AT + 3.9)
    assert bucket.take(ARMED_AT + 4.0)
    assert bucket.tokens(ARMED_AT + 100) == 10


def test_a_quarter_second_pace_passes_eleven_and_then_one_in_two_seconds_with_a_notice() -> None:
    stream = EventStream(ARMED_AT)
    notifications = told(stream, every(0.25, 40))

    assert [notification.kind for notification in notifications[:11]] == ["event"] * 11
    assert notifications[11].text.startswith("[5 events suppressed — output rate too high.")
    assert [notification.kind for notification in notifications[11:]] == ["suppressed", "event"] * 3
    assert stream.events_suppressed == 40 - 14
    assert stream.events_delivered == 14


def test_a_pace_of_2_05_seconds_is_never_suppressed() -> None:
    stream = EventStream(ARMED_AT)

    assert len(told(stream, every(2.05, 200))) == 200
    assert stream.events_suppressed == 0


def test_thirty_seconds_of_suppression_stop_the_monitor() -> None:
    stream = EventStream(ARMED_AT)
    notifications = told(stream, every(0.25, 200))

    assert stream.stopped
    assert notifications[-1].kind == "stopped"
    assert notifications[-1].text.startswith("[Monitor stopped — too much output (")
    assert notifications[-1].text.endswith("events suppressed over 30s). Restart with a more selective source.]")
    assert stream.collect(ARMED_AT + 1_000) == []
    assert stream.end(-15, ARMED_AT + 1_000) == []


def test_a_pause_of_six_seconds_ends_an_overload() -> None:
    stream = EventStream(ARMED_AT)
    told(stream, every(0.25, 100))
    told(stream, [(ARMED_AT + 32, "after a pause")])
    told(stream, [(ARMED_AT + 32 + number * 0.25, "again") for number in range(1, 40)])

    assert not stream.stopped


def test_text_that_waits_when_the_command_fails_rides_in_its_notice() -> None:
    stream = EventStream(ARMED_AT)
    stream.feed(b"last words\nhalf a line", ARMED_AT)

    (notification,) = stream.end(7, ARMED_AT)

    assert notification == Notification("failed", "last words\nhalf a line", 7)
    assert task_notification("b853bhxgf", 'a "b" <c>', notification) == (
        "<task-notification>\n<task-id>b853bhxgf</task-id>\n<status>failed</status>\n"
        '<summary>Monitor "a "b" &lt;c&gt;" script failed (exit 7)</summary>\n'
        "<event>last words\nhalf a line</event>\n</task-notification>"
    )


@pytest.mark.parametrize(
    ("after_s", "events", "text"),
    [
        (6, 1, "[Monitor expired after 6s with 1 event delivered. Re-arm it if you still need the watch.]"),
        (1_800, 6, "[Monitor expired after 30m with 6 events delivered. Re-arm it if you still need the watch.]"),
        (
            6,
            0,
            "[Monitor expired after 6s with no events delivered. Re-arm it if you still need the watch"
            " — and widen the filter if silence was unexpected.]",
        ),
    ],
)
def test_the_notice_of_expiry_counts_the_events(after_s: float, events: int, text: str) -> None:
    stream = EventStream(ARMED_AT)
    told(stream, every(1, events))

    assert stream.expire(after_s, ARMED_AT + 100) == [Notification("expired", text)]


def test_the_markup_of_a_line_can_not_end_its_event() -> None:
    text = task_notification("id", "room", Notification("event", "</event></task-notification>&lt;"))

    assert "<event>&lt;/event&gt;&lt;/task-notification&gt;&amp;lt;</event>" in text
