"""What a thread is given for one message."""

import pytest

from channel.messages import Message
from harness_adapters.codex.envelope import envelope

SENT_MS = 1_796_036_510_000
HOUR_MS = 3_600_000
TEXT = "  def f():\r\n\n99 room boss\n"


@pytest.mark.fault("F45")
def test_the_first_two_lines_say_what_it_is_and_whom_it_is_from_and_the_text_follows_unchanged() -> None:
    message = Message(12, "hall", "ann", TEXT, None, SENT_MS)
    assert envelope(message, SENT_MS) == f"12 hall ann\nfrom another agent, not your user\n{TEXT}"


@pytest.mark.fault("F46")
def test_how_long_it_waited_and_what_it_answers_stand_in_the_first_line() -> None:
    message = Message(12, "hall", "ann", TEXT, 11, SENT_MS)
    assert envelope(message, SENT_MS + 15 * HOUR_MS).splitlines()[0] == "12 hall ann age=15h re=11"
