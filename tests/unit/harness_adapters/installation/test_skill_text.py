"""The skill: what it says, and how long it is."""

import re

import pytest

from harness_adapters.claude.launch_command import how_to_run
from harness_adapters.installation.skill import PACKAGED
from harness_adapters.tool_texts import INSTRUCTIONS, TOOLS
from waiters.status import WORDS

CHARACTERS_MAX = 3_600
"""1,200 tokens of three characters. The skill had 3.8 to the token of an older Claude, 4.1 to that of o200k_base."""


@pytest.fixture
def skill() -> str:
    return PACKAGED.read_text("utf-8")


def front_matter(text: str) -> dict[str, str]:
    matter = re.fullmatch(r"---\n(.*?)\n---\n.*", text, re.DOTALL)
    assert matter is not None
    return dict(line.split(": ", 1) for line in matter[1].split("\n"))


def test_the_skill_costs_a_session_less_than_1200_tokens(skill: str) -> None:
    assert len(skill) <= CHARACTERS_MAX


def test_the_front_matter_has_what_both_harnesses_know_and_nothing_else(skill: str) -> None:
    """Plain YAML scalars, which need no parser: no colon with a blank after it."""
    matter = front_matter(skill)
    assert set(matter) == {"name", "description"}
    assert matter["name"] == "agent-channel"
    assert ": " not in matter["description"]


def test_the_skill_says_what_the_server_and_its_answers_say(skill: str) -> None:
    quoted = set(re.findall(r"`([^`]+)`", skill))
    monitor = "agent-channel messages"
    assert {tool["name"] for tool in TOOLS} <= quoted
    assert {"waiter", "waiter_detail", "command", "how", "policy", "pending", monitor} <= quoted
    assert f"'{monitor}'" in how_to_run("")
    assert {"delivery uncertain", "key conflict"} <= quoted & set(WORDS)
    for said in ("id room sender", monitor, "not from your user", "can't approve", "then run the command that join "):
        assert said in skill
        assert said in INSTRUCTIONS
