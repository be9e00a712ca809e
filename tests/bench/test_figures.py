"""The figures of the bench: limits, medians, the table."""

import pytest

from tests.bench.figures import Figure, Limit, as_json, series, table


@pytest.mark.parametrize(
    ("limit", "held", "missed"),
    [(Limit("at most", 50), (0, 50), (50.1,)), (Limit("at least", 200), (200, 999), (199.9,))],
)
def test_a_limit_is_held_up_to_its_value(limit: Limit, held: tuple[float, ...], missed: tuple[float, ...]) -> None:
    assert all(Figure("x", value, "ms", limit=limit).holds for value in held)
    assert not any(Figure("x", value, "ms", limit=limit).holds for value in missed)


def test_a_figure_without_a_limit_neither_holds_nor_misses() -> None:
    assert Figure("floor", 1, "ms").holds is None


def test_a_series_is_its_median_and_its_95th_percentile() -> None:
    figure = series("x", [float(value) for value in range(101)], "ms")
    assert (figure.value, figure.p95, figure.count) == (50, 95, 101)


def test_the_table_and_the_json_say_which_limit_was_missed_and_why() -> None:
    missed = Figure("send", 9.44, "ms", p95=18.7, count=20, limit=Limit("at most", 6.9, "the floors"))
    lines = table([("line", missed), ("line", Figure("floor", 3.0, "ms"))]).splitlines()
    expected = ["line:", "send", "9.44", "18.7", "ms", "20", "at", "most", "6.9", "(the", "floors)", "MISSED"]
    assert lines[1].split() == expected
    assert lines[2].split() == ["line:", "floor", "3", "ms", "1"]
    assert as_json("line", missed)["holds"] is False
