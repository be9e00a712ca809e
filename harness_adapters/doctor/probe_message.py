"""The message of a probe: all that is easily harmed on the way, and two code words that only a whole text gives."""

import re
from dataclasses import dataclass

from channel.clock import IdSource
from channel.names import utf16_units

UNITS_MIN = 3_100
"""UTF-16 units: Monitor cuts an event after 3,000, so this needs two."""

_HEAD = """\
This is a test of the way to you and back. Your user's `agent-channel doctor` sends it, and waits.
Please answer once, with `send` to `{sender}` in the room `{room}`: the word behind FIRST, a blank, and the word behind
LAST, which is the end of this message. Nothing else is asked of you.

FIRST {first}

\tif sails < wind and not moored:      # a tab, and trailing blanks:  \n\
\t    return "⛵ 👩‍👩‍👧‍👦 <b>&amp;</b> \\\\n"

"""
_LINE = "    line {number}, indented: the quick brown 🦊 jumps over the lazy 🐶\n"


@dataclass(frozen=True)
class ProbeMessage:
    """`text` as it is sent; the answer must hold both words."""

    text: str
    first: str
    last: str

    def is_answered_by(self, answer: str) -> bool:
        words = re.findall(r"\w+", answer)
        return self.first in words and self.last in words


def probe_message(sender: str, room: str, ids: IdSource) -> ProbeMessage:
    """A new one; its words are drawn, so that no earlier answer fits."""
    first, last = ids.new_id(), ids.new_id()
    text, number = _HEAD.format(sender=sender, room=room, first=first), 1
    while utf16_units(text) < UNITS_MIN:
        text += _LINE.format(number=number)
        number += 1
    return ProbeMessage(f"{text}\nLAST {last}\n", first, last)
