"""Pages of a long text: ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.claude.paging import PAGE_CHARACTERS_MAX, Page, paginate


@given(st.lists(st.tuples(st.sampled_from(["x", "\n", "𝒳", "word\n"]), st.integers(1, 15_000)), max_size=6))
def test_the_pages_joined_are_the_text(runs: list[tuple[str, int]]) -> None:
    text = "".join(piece * count for piece, count in runs)
    count = paginate(text, 1).count

    pages = [paginate(text, number).text for number in range(1, count + 1)]

    assert "".join(pages) == text
    assert max(map(len, pages)) <= PAGE_CHARACTERS_MAX


def test_a_short_text_is_one_page() -> None:
    assert paginate("", 1) == Page("", 1, 1)
    assert paginate("x" * PAGE_CHARACTERS_MAX, 1) == Page("x" * PAGE_CHARACTERS_MAX, 1, 1)


def test_a_page_ends_with_a_line_where_one_ends_near() -> None:
    text = ("y" * 99 + "\n") * 500

    assert paginate(text, 1).text.endswith("\n")
    assert paginate("x" * 50_000, 1).text == "x" * PAGE_CHARACTERS_MAX


@pytest.mark.parametrize("number", [-1, 0, 4])
def test_a_page_that_does_not_exist_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="the text has 3"):
        paginate("x" * 50_000, number)
