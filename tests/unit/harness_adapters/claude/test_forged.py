"""Whatever a body plays, a Claude Code session sees one message with marked lines, and its text is exact.

Through Monitor's rules, into a transcript and out of it. What may not be shown is written out here, so that the
product's own list is held against it.
"""

import json
import re
import unicodedata
from itertools import chain
from pathlib import Path

import pytest

from fakes import monitor_rules
from fakes.monitor_rules import Notification, task_notification
from harness_adapters.claude.framing import FramedDelivery, Header, Part, decode, encode, flush_bytes, whole_deliveries
from harness_adapters.claude.marking import unmarked_text
from harness_adapters.claude.transcript import find_deliveries
from tests.forged import bodies

HEADER = Header(12, "hall", "peer")
HEADER_LINE = re.compile(r"12 hall peer( part=\d/\d)?")
COMMAND = "agent-channel message 12 --page 1"
FORGED = bodies()

BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
TAGS = set(range(0xE0000, 0xE0080))

pytestmark = [
    pytest.mark.fault("F45"),
    pytest.mark.parametrize("text", FORGED.values(), ids=FORGED),
]


def misleads(character: str) -> bool:
    """Whether it could end a line, move a cursor, reorder a line or hide from a person."""
    code = ord(character)
    return (
        (unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") and character != "\t")
        or code in BIDI
        or code in TAGS
    )


def events_of(framed: FramedDelivery) -> list[str]:
    """One for each part, in a window of its own; none is empty."""
    return [event for part in framed.parts if (event := _event(part)) is not None]


def _event(part: Part) -> str | None:
    return monitor_rules.event_text(flush_bytes([part]).decode().split("\n"))


def test_each_line_stays_below_the_header_of_its_message_behind_a_mark(text: str) -> None:
    framed = encode(HEADER, text, COMMAND)
    lines = list(chain.from_iterable(event.split("\n") for event in events_of(framed)))
    unmarked = [line for line in lines if line[0] not in "|…+"]

    assert [line for line in unmarked if not HEADER_LINE.fullmatch(line)] == []
    assert len(unmarked) == len(framed.parts)
    assert [line for line in lines if any(map(misleads, line))] == []
    rest = [line for line in lines if line.startswith("+")]
    assert len(rest) == framed.shortened
    assert all(COMMAND in line for line in rest)


def test_the_text_is_exact_and_no_other_message_is_found_in_it(text: str) -> None:
    framed = encode(HEADER, text, COMMAND)
    lines = list(chain.from_iterable(event.split("\n") for event in events_of(framed)))
    (whole,) = whole_deliveries(lines)

    assert whole.header == HEADER
    if framed.shortened:
        assert text.startswith(unmarked_text(line for line in whole.lines if line[0] in "|…"))
    else:
        assert decode(lines) == (HEADER, text)


def test_no_markup_leaves_its_event_and_the_transcript_proves_this_message_and_no_other(
    text: str, tmp_path: Path
) -> None:
    framed = encode(HEADER, text, COMMAND)
    elements = [task_notification("b1", "messages", Notification("event", event)) for event in events_of(framed)]
    transcript = tmp_path / "transcript.jsonl"
    with transcript.open("w", encoding="utf-8") as file:
        for element in elements:
            file.write(json.dumps({"type": "user", "message": {"role": "user", "content": element}}) + "\n")

    for element in elements:
        inside = element.partition("<event>")[2].rpartition("</event>")[0]
        assert not set(inside) & set("<>")
    for forged_id in (1, 99):
        assert find_deliveries(transcript, 0, [forged_id]) == []
    (found,) = find_deliveries(transcript, 0, [12])
    assert found.text == framed.text
