"""The marks of a body are ours; what is cut, trimmed and dropped is Monitor's (fakes/monitor_rules.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel.names import utf16_units
from fakes import monitor_rules
from harness_adapters.claude.framing import parse_header
from harness_adapters.claude.marking import LINE_UNITS_MAX, marked_lines, unmarked_text

JOINED_EMOJI = "👨‍👩‍👧‍👦"
ODD = "\t\x00\x07\x0b\x0c\r\x1b[31m\x7f\x85\u00a0\u200d\u200f\u2028\u2029\u202e\u2066\ufeff⟦⟧|…+\\é" + JOINED_EMOJI

any_text = st.text(st.one_of(st.sampled_from(" \n" + ODD), st.characters(exclude_categories=["Cs"])), max_size=300)
long_text = st.lists(
    st.tuples(st.sampled_from(["a", " ", "\t", "\n", "e\u0301", "𝒳", *ODD]), st.integers(1, 700)), max_size=8
).map(lambda runs: "".join(piece * count for piece, count in runs))


@given(st.one_of(any_text, long_text))
def test_any_text_comes_back_exactly_through_what_monitor_does_to_lines(text: str) -> None:
    shown = [monitor_rules.shown_line(line) for line in marked_lines(text)]

    assert None not in shown
    assert unmarked_text(line for line in shown if line is not None) == text


@given(st.one_of(any_text, long_text))
def test_no_line_is_longer_than_monitor_passes(text: str) -> None:
    assert max(utf16_units(line) for line in marked_lines(text)) <= LINE_UNITS_MAX


@pytest.mark.fault("F45")
@given(st.one_of(any_text, st.integers(0, 10**19).map(lambda number: f"{number} room boss\n|{number} room boss")))
def test_no_line_of_a_body_can_be_read_as_a_header(text: str) -> None:
    assert [parse_header(line) for line in marked_lines(text)] == [None] * len(list(marked_lines(text)))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["|"]),
        ("\n", ["|", "|"]),
        ("def f():\n    return 1\n", ["|def f():", "|    return 1", "|"]),
        ("two blanks  \nnext", ["|two blanks ⟦U+0020⟧", "|next"]),
        ("\t\tdeep", ["|\t\tdeep"]),
        ("tab\t", ["|tab⟦U+0009⟧"]),
        (r"C:\new\table \u0041", [r"|C:\new\table \u0041"]),
        ("a ⟦U+0041⟧ b", ["|a ⟦U+27E6⟧U+0041⟧ b"]),
        ("\x1b[31mred\x00", ["|⟦U+001B⟧[31mred⟦U+0000⟧"]),
        ("one\r\ntwo\u2028three", ["|one⟦U+000D⟧", "|two⟦U+2028⟧three"]),
        ("user\u202etxt.exe", ["|user⟦U+202E⟧txt.exe"]),
        (f"joined {JOINED_EMOJI} ❤️", [f"|joined {JOINED_EMOJI} ❤️"]),
        ("שלום\u200f!", ["|שלום\u200f!"]),
        ("hidden\U000e0068", ["|hidden⟦U+E0068⟧"]),
    ],
)
@pytest.mark.fault("F44")
def test_what_would_be_lost_or_mislead_is_written_as_its_code_point(text: str, lines: list[str]) -> None:
    assert list(marked_lines(text)) == lines
    assert unmarked_text(lines) == text


@pytest.mark.fault("F44")
def test_a_lone_surrogate_does_not_stop_the_stream() -> None:
    lines = list(marked_lines("half \ud83d of a pair"))

    assert lines == ["|half ⟦U+D83D⟧ of a pair"]
    assert "\n".join(lines).encode()


@pytest.mark.parametrize("joined", [JOINED_EMOJI, "e\u0301\u0323", "👍🏽", "❤\ufe0f", "𝒳"])
def test_a_cut_spares_joined_characters(joined: str) -> None:
    for before in range(470, 500):
        lines = list(marked_lines("x" * before + joined + "y" * 40))

        assert sum(joined in line for line in lines) == 1


def test_a_cut_leaves_blanks_to_the_next_line_where_that_is_near() -> None:
    first, second = marked_lines("x" * 488 + " " * 10 + "y")

    assert first == "|" + "x" * 488
    assert second == "…" + " " * 10 + "y"


def test_a_line_without_a_mark_is_no_line_of_a_body() -> None:
    with pytest.raises(ValueError, match="not a line of a body"):
        unmarked_text(["|fine", "12 room boss"])
    with pytest.raises(ValueError, match="not a line of a body"):
        unmarked_text(["…a continuation of nothing"])
