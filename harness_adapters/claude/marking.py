"""A text as marked lines that Claude Code's Monitor passes on unharmed, and the exact text back.

Monitor cuts a line after 500 UTF-16 units, trims both its ends and drops it if nothing is left;
control characters it passes on (measured: Claude Code 2.1.332). So each line gets a mark of one
character in front, a longer one goes on in continuation lines with a mark of their own, and what
would be trimmed or could mislead a reader is written as `⟦U+XXXX⟧`. Backslashes are left alone.

This module knows nothing of deliveries; see framing.py.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from channel.names import utf16_units

LINE_UNITS_MAX = 500
"""UTF-16 units of one line, its mark included: Monitor passes 500 whole and cuts off the 501st."""

LINE_MARK = "|"
CONTINUATION_MARK = "…"

_ESCAPED_BLANK_GROWTH = len("⟦U+0020⟧") - 1
_SEGMENT_UNITS_MAX = LINE_UNITS_MAX - len(LINE_MARK) - _ESCAPED_BLANK_GROWTH

_BACK_OFF_MAX = 32
"""Characters that a cut moves back to spare a blank or a joined character: a family emoji has 11."""

_BLANKS = frozenset("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
"""What ECMAScript's `trim()` takes off the ends of a line."""

_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, CR and U+0085 among them; tab is harmless
    "\u2028\u2029"  # line and paragraph separator
    "\u202a-\u202e\u2066-\u2069"  # bidi embeddings, overrides, isolates: they reorder what is seen
    "\ud800-\udfff"  # `send` refuses lone surrogates; one that came here must not stop the stream
    "⟦"
    "\U000e0000-\U000e007f"  # tags: text that a model reads and a person does not see
    "]"
)
_ESCAPED = re.compile(r"⟦U\+([0-9A-F]{4,6})⟧")


def marked_lines(text: str, line_mark: str = LINE_MARK) -> Iterator[str]:
    """`text` as marked lines of at most `LINE_UNITS_MAX`; an empty text is one empty line."""
    for line in text.split("\n"):
        mark = line_mark
        for segment in _segments(line):
            yield mark + _escape(segment)
            mark = CONTINUATION_MARK


def unmarked_text(lines: Iterable[str]) -> str:
    """The text that `marked_lines` was given.

    Raises:
        ValueError: a line carries no mark, or the first one is a continuation.
    """
    pieces: list[str] = []
    for line in lines:
        mark, segment = line[:1], _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), line[1:])
        if mark == LINE_MARK:
            pieces.append("\n" + segment)
        elif mark == CONTINUATION_MARK and pieces:
            pieces.append(segment)
        else:
            raise ValueError(f"not a line of a body: {line!r}")
    return "".join(pieces)[1:]


def _segments(line: str) -> Iterator[str]:
    """`line` in pieces that fit one line of Monitor once escaped; an empty line is one piece."""
    start = 0
    while True:
        end = _cut_after(line, start)
        yield line[start:end]
        start = end
        if start == len(line):
            return


def _cut_after(line: str, start: int) -> int:
    """Where the piece from `start` ends: as late as fits, but sparing a joined character.

    Nor right after a blank where another place is near: the blank would have to be escaped.
    """
    end, units = start, 0
    while end < len(line):
        units += _escaped_units(line[end])
        if units > _SEGMENT_UNITS_MAX:
            break
        end += 1
    if end == len(line):
        return end
    for candidate in range(end, max(start, end - _BACK_OFF_MAX), -1):
        if line[candidate - 1] not in _BLANKS and not _joins(line, candidate):
            return candidate
    return end


def _joins(line: str, index: int) -> bool:
    """Whether a reader sees the character at `index` as one with the character before it."""
    character = line[index]
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")  # accents, variation selectors
        or "\u200d" in (character, line[index - 1])  # zero width joiner
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
    )


def _escape(segment: str) -> str:
    escaped = _UNSAFE.sub(lambda unsafe: _code_point(unsafe[0]), segment)
    if escaped and escaped[-1] in _BLANKS:
        escaped = escaped[:-1] + _code_point(escaped[-1])
    return escaped


def _code_point(character: str) -> str:
    return f"⟦U+{ord(character):04X}⟧"


def _escaped_units(character: str) -> int:
    return len(_code_point(character)) if _UNSAFE.match(character) else utf16_units(character)
