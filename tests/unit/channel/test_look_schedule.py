"""When an open delivery is looked for again."""

import pytest

from channel.delivery_states import State
from channel.look_schedule import LOOK_S_MAX, look_after_s


def test_an_accepted_delivery_is_looked_for_soon_and_then_at_doubling_intervals_up_to_ten_minutes() -> None:
    intervals = [look_after_s(State.ACCEPTED, looks) for looks in range(13)]

    assert intervals == [1, 2, 5, 10, 10, 30, 60, 120, 240, 480, 600, 600, 600]


def test_an_uncertain_delivery_is_looked_for_every_ten_seconds_for_three_minutes_and_then_more_seldom() -> None:
    intervals = [look_after_s(State.UNCERTAIN, looks) or 0 for looks in range(26)]

    assert intervals[:18] == [10] * 18
    assert intervals[18:] == [20, 40, 80, 160, 320, 600, 600, 600]


@pytest.mark.parametrize("state", [State.HANDED_OVER, State.ACCEPTED, State.UNCERTAIN])
def test_the_looks_never_end(state: State) -> None:
    assert look_after_s(state, 10_000_000) == LOOK_S_MAX


@pytest.mark.parametrize("state", [State.PENDING, State.SEEN, State.CONFLICT, State.WITHDRAWN])
def test_nothing_else_is_looked_for(state: State) -> None:
    assert look_after_s(state, 0) is None
