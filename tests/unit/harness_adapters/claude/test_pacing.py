"""The pace is ours; the bucket that it must never overrun is Monitor's (fakes/monitor_rules.py)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fakes import monitor_rules
from harness_adapters.claude.pacing import UNLIMITED, Pacing


def flush_times(wanted: list[float], pacing: Pacing, taken_after_s: float = 0.01) -> list[float]:
    """When flushes go that are wanted at these times, each taken a moment later."""
    times: list[float] = []
    for want in wanted:
        times.append(max(want, pacing.next_flush_at(), times[-1] if times else want))
        pacing.flushed(times[-1])
        pacing.taken(times[-1] + taken_after_s)
    return times


def test_the_first_flush_goes_at_once() -> None:
    assert Pacing().next_flush_at() < 0


def test_a_burst_is_spaced_by_the_pause_and_then_by_the_refill() -> None:
    times = flush_times([1_000.0] * 24, Pacing())
    gaps = [round(later - earlier, 3) for earlier, later in pairwise(times)]

    assert gaps[:8] == [1.01] * 8
    assert gaps[-3:] == [2.1] * 3


def test_the_pause_counts_from_when_the_reader_took_the_flush() -> None:
    pacing = Pacing()
    pacing.flushed(1_000.0)
    pacing.taken(1_060.0)

    assert pacing.next_flush_at() == 1_061.0


def test_a_busy_monitor_that_closes_its_window_late_gets_no_two_flushes_in_one() -> None:
    late_s = 0.7
    stream, events = monitor_rules.EventStream(0.0), 0
    for number, at in enumerate(flush_times([0.0] * 20, Pacing())):
        closes_at = stream.due_at()
        if closes_at is not None and closes_at + late_s <= at:
            events += len(stream.collect(closes_at + late_s))
        assert events == number
        stream.feed(b"12 hall ann\n", at)


def test_after_a_rest_the_bucket_is_full_again_and_no_fuller() -> None:
    pacing = Pacing()
    flush_times([1_000.0] * 20, pacing)
    times = flush_times([2_000.0] * 12, pacing)

    assert times[8] - times[0] < 9
    assert times[9] - times[0] > 2.1


def test_switched_off_nothing_waits() -> None:
    pacing = Pacing(UNLIMITED)
    for _ in range(100):
        pacing.flushed(1_000.0)
        pacing.taken(1_000.0)

    assert pacing.next_flush_at() <= 1_000.0


@given(
    armed_at=st.floats(0, 10),
    gaps=st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0, 1.9, 2.0, 2.1, 5.0, 30.0]), min_size=1, max_size=120),
    reading_s=st.floats(0, 0.2),
)
def test_no_schedule_of_flushes_empties_monitors_own_bucket(
    armed_at: float, gaps: list[float], reading_s: float
) -> None:
    """Whatever the phase of Monitor's 2 s steps, and with its reader late by as much as a window."""
    wanted = [armed_at + sum(gaps[: index + 1]) for index in range(len(gaps))]
    bucket = monitor_rules.TokenBucket(0.0)

    events = [time + reading_s + monitor_rules.WINDOW_S for time in flush_times(wanted, Pacing(), reading_s)]

    assert all(bucket.take(time) for time in events)
    assert all(later - earlier > monitor_rules.WINDOW_S for earlier, later in pairwise(events))


@given(
    used_at=st.lists(st.floats(0, 30), min_size=1, max_size=12).map(sorted),
    killed_after_s=st.floats(0, 30),
    wanted_after_s=st.lists(st.floats(0, 60), min_size=1, max_size=60).map(sorted),
)
def test_one_that_takes_over_a_monitor_never_empties_its_bucket(
    used_at: list[float], killed_after_s: float, wanted_after_s: list[float]
) -> None:
    """Whatever the one before it had used of the bucket, which nobody can tell it."""
    former, latter = Pacing(), Pacing()
    used = flush_times(used_at, former)
    taken_over_at = used[-1] + killed_after_s
    latter.emptied(taken_over_at)
    flushes = used + flush_times([taken_over_at + after for after in wanted_after_s], latter)
    bucket = monitor_rules.TokenBucket(0.0)

    assert all(bucket.take(time + monitor_rules.WINDOW_S) for time in flushes)
    assert all(later - earlier > monitor_rules.WINDOW_S for earlier, later in pairwise(flushes))
