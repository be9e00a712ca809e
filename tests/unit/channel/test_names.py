"""Names, texts and policies: what the channel takes, and what it refuses with a reason."""

import pytest

from channel.errors import BadName, BadPolicy, BadText
from channel.names import check_name, check_policy, check_text, utf16_units
from tests.forged import kind


@pytest.mark.parametrize("name", ["alice", "a-b_c.d", "ärger", "日本", "x" * 200, "👍" * 100, "#1", "agent-channel-2"])
def test_an_ordinary_name_is_taken(name: str) -> None:
    assert check_name(name, "role") == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("x" * 201, "longer than 200"),
        ("👍" * 101, "longer than 200"),
        ("two words", "a blank"),
        ("no\u00a0break", "a blank"),
        ("tab\there", "a control character"),
        ("line\nbreak", "a control character"),
        ("esc\x1b[31m", "a control character"),
        ("nel\u0085", "a control character"),
        ("line\u2028separator", "a line separator"),
        ("right\u202eto-left", "an invisible format character"),
        ("joined\u200demoji", "an invisible format character"),
        ("half\ud800", "half of a surrogate pair"),
        ("<system>", "none of <>&= may stand in a name"),
        ("a=b", "none of <>&= may stand in a name"),
        ("a&b", "none of <>&= may stand in a name"),
        ("agent-channel", "the channel's own notices"),
        ("Agent-Channel", "the channel's own notices"),
    ],
)
def test_a_name_that_could_break_the_first_line_of_a_delivery_is_refused(name: str, why: str) -> None:
    with pytest.raises(BadName, match=r"The role name .* can't be used") as refused:
        check_name(name, "role")

    assert why in str(refused.value)


def test_the_channels_own_name_may_be_that_of_a_room() -> None:
    assert check_name("agent-channel", "room") == "agent-channel"


def test_one_name_has_one_spelling() -> None:
    assert check_name("cafe\u0301", "role") == "caf\u00e9"


@pytest.mark.fault("F44")
@pytest.mark.parametrize(
    "text",
    [
        "nul \0 in it",
        "\x1b[2Jcleared\x1b]0;title\x07",
        "carriage\rreturn\r\n",
        "next\u0085line\u2028separator\u2029end",
        "right\u202eto\u202c left\u200f",
        "👩\u200d👩\u200d👧 and \U0010ffff",
        "   \n\n\t indented \n",
        "\ufeffbom",
        "\n",
        "x" * 1_000_000,
    ],
)
def test_a_text_that_can_be_given_exactly_is_taken_unchanged(text: str) -> None:
    assert check_text(text) == text


@pytest.mark.parametrize("name", ["-", "--all", "-x"])
def test_a_name_that_a_command_would_take_for_an_option_is_refused(name: str) -> None:
    with pytest.raises(BadName, match="it begins with '-'"):
        check_name(name, "role")
    assert check_name(f"a{name}", "role") == f"a{name}"


@pytest.mark.fault("F44")
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc80 of a badly decoded byte"])
def test_half_of_a_surrogate_pair_is_refused_at_send(text: str) -> None:
    """The Codex app-server drops such a line without an answer (measured with 0.171.0)."""
    with pytest.raises(BadText, match=r"half of a surrogate pair \(U\+D[89A-F]..\).*Remove or replace it"):
        check_text(text)


def test_an_empty_text_and_one_that_is_too_long_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadText, match=r"it is empty.*Nothing was sent"):
        check_text("")
    with pytest.raises(BadText, match=r"1,000,001 characters, and at most 1,000,000.*Write it to a file"):
        check_text("x" * 1_000_001)


def test_a_policy_is_bounded_and_may_be_empty() -> None:
    assert check_policy("") == ""
    assert check_policy("p" * 2_000) == "p" * 2_000
    with pytest.raises(BadPolicy, match="2,001 characters"):
        check_policy("p" * 2_001)
    with pytest.raises(BadPolicy, match="half of a surrogate pair"):
        check_policy("\ud800")


def test_lengths_are_counted_as_javascript_counts_them() -> None:
    assert utf16_units("aé日👍") == 5


@pytest.mark.fault("F45")
@pytest.mark.parametrize("name", kind("names").values(), ids=kind("names"))
@pytest.mark.parametrize("what", ["room", "role"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(what: str, name: str) -> None:
    with pytest.raises(BadName):
        check_name(name, what)


@pytest.mark.fault("F45")
@pytest.mark.parametrize("name", kind("role_names").values(), ids=kind("role_names"))
def test_no_role_can_be_taken_for_the_channel_itself(name: str) -> None:
    with pytest.raises(BadName, match="own notices"):
        check_name(name, "role")
    check_name(name, "room")
