"""Ages in words, as models and people read and write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waiters.age import age_from_words, age_in_words

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


@pytest.mark.fault("F46")
@pytest.mark.parametrize(
    ("age_ms", "words"),
    [
        (0, ""),
        (MINUTE_MS - 1, ""),
        (MINUTE_MS, "1m"),
        (HOUR_MS - 1, "59m"),
        (15 * HOUR_MS, "15h"),
        (DAY_MS - 1, "23h"),
        (3 * DAY_MS + HOUR_MS, "3d"),
        (-HOUR_MS, ""),
    ],
)
def test_an_age_is_its_largest_whole_unit_and_nothing_below_a_minute(age_ms: int, words: str) -> None:
    assert age_in_words(age_ms) == words


@given(st.integers(min_value=MINUTE_MS, max_value=100_000 * DAY_MS))
def test_an_age_in_words_is_never_older_than_it_is_and_reads_back_as_itself(age_ms: int) -> None:
    words = age_in_words(age_ms)
    assert age_from_words(words) <= age_ms < 2 * age_from_words(words)
    assert age_in_words(age_from_words(words)) == words


@pytest.mark.parametrize("words", ["", "3", "d", "-3d", "3 d", "3w", "1.5h", "٣d", "3d\n"])
def test_what_is_no_age_is_an_error(words: str) -> None:
    with pytest.raises(ValueError, match="is no age: write 40m, 15h or 3d"):
        age_from_words(words)
