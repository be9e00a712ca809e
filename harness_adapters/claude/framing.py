"""A delivery as flushes that Claude Code's Monitor passes on whole, and the exact text back from them.

    12 review alice part=1/2 re=11      the header: id room sender, then what there is to say
    |def f():                           a line of the body
    |    return 1
    |                                   an empty line of the body
    |a line that is longer than ...
    …what one line of Monitor holds     its continuation (marking.py)

Every line of a body carries a mark and a header begins with a digit, so no body can look like
a header. This module knows neither the pipe nor the pace nor the store.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from channel.names import utf16_units
from harness_adapters.claude.marking import (
    CONTINUATION_MARK,
    LINE_MARK,
    LINE_UNITS_MAX,
    marked_lines,
    unmarked_text,
)

FLUSH_UNITS_MAX = 2_999
"""UTF-16 units of one flush, each line's newline included: Monitor cuts an event after 3,000.

Monitor counts before `<`, `>` and `&` become entities, so entities need no room.
"""

FLUSHES_MAX = 8
"""A longer delivery would hold up the others for half a minute of pacing: the reader fetches it."""

REST_MARK = "+"
"""In front of the line that says where the rest of a shortened text is."""

_HEADER = re.compile(r"([0-9]{1,19}) (\S+) (\S+)((?: [a-z]+=\S+)*)")
_PART = re.compile(r"([1-9])/([1-9])")
_MESSAGE_ID = re.compile(r"[0-9]{1,19}")
_PART_FIELD_UNITS = len(f" part={FLUSHES_MAX}/{FLUSHES_MAX}")


@dataclass(frozen=True)
class Header:
    """What the first line of a delivery, or of a part of it, says. Names hold no whitespace."""

    message_id: int
    room: str
    sender: str
    part: int = 1
    parts: int = 1
    age: str = ""
    """How long the message waited (`15h`), empty when not worth a word."""
    reply_to: int | None = None
    repeat: bool = False
    """It may have been shown before."""

    def line(self) -> str:
        fields = [str(self.message_id), self.room, self.sender]
        if self.parts > 1:
            fields.append(f"part={self.part}/{self.parts}")
        if self.age:
            fields.append(f"age={self.age}")
        if self.reply_to is not None:
            fields.append(f"re={self.reply_to}")
        if self.repeat:
            fields.append("repeat=1")
        return " ".join(fields)

    def of_whole(self) -> "Header":
        """The same header without its part: equal for all parts of one writing."""
        return replace(self, part=1, parts=1)


class Part(NamedTuple):
    """Lines that belong in one flush: a header and marked lines."""

    lines: tuple[str, ...]

    @property
    def units(self) -> int:
        """UTF-16 units with each line's newline."""
        return sum(map(_units_of_line, self.lines))


class FramedDelivery(NamedTuple):
    """A delivery as it is written; `shortened` when its text is too long and only begins here."""

    parts: tuple[Part, ...]
    shortened: bool

    @property
    def text(self) -> str:
        """All that is written of the delivery; the store keeps the SHA-256 of it."""
        return "\n".join(line for part in self.parts for line in part.lines)


class WholeDelivery(NamedTuple):
    """All lines of one writing of a delivery, as found in what was shown."""

    header: Header
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """Equals `FramedDelivery.text` of what was written, if nothing was changed on the way."""
        return "\n".join(self.lines)

    @property
    def shortened(self) -> bool:
        """Whether its text only begins here."""
        return any(line.startswith(REST_MARK) for line in self.lines)


def encode(header: Header, text: str, full_text_command: str) -> FramedDelivery:
    """`text` under `header` (its part is chosen here) in parts that each fit one flush.

    A text that needs more than `FLUSHES_MAX` flushes goes out as its first part, which ends in
    a line with `full_text_command`: what the reader runs to see the whole.

    Raises:
        ValueError: the header does not read back as itself, or is too long: the names are at fault.
    """
    head = header.of_whole()
    if parse_header(head.line()) != head:
        raise ValueError(f"not a header that a reader could take apart: {head.line()!r}")
    if utf16_units(head.line()) + _PART_FIELD_UNITS > LINE_UNITS_MAX:
        raise ValueError(f"a header that is longer than a line of Monitor holds: {head.line()!r}")
    room = FLUSH_UNITS_MAX - _units_of_line(head.line())
    bodies = _first_flushes(text, room, 2)
    if len(bodies) == 1:
        return FramedDelivery((Part((head.line(), *bodies[0])),), shortened=False)
    bodies = _first_flushes(text, room - _PART_FIELD_UNITS, FLUSHES_MAX + 1)
    if len(bodies) > FLUSHES_MAX:
        rest = list(marked_lines(f"the text goes on; all {len(text)} characters: {full_text_command}", REST_MARK))
        (body,) = _first_flushes(text, room - sum(map(_units_of_line, rest)), 1)
        return FramedDelivery((Part((head.line(), *body, *rest)),), shortened=True)
    return FramedDelivery(
        tuple(
            Part((replace(head, part=number, parts=len(bodies)).line(), *body))
            for number, body in enumerate(bodies, start=1)
        ),
        shortened=False,
    )


def decode(lines: Iterable[str]) -> tuple[Header, str]:
    """The header and the exact text of the one delivery whose lines (of all its parts) these are.

    `lines` are as the model saw them, entities already turned back.

    Raises:
        ValueError: they are not the lines of exactly one whole delivery, or it was shortened.
    """
    wholes = list(whole_deliveries(lines))
    if len(wholes) != 1:
        raise ValueError(f"expected the lines of one whole delivery, found {len(wholes)}")
    (whole,) = wholes
    if whole.shortened:
        raise ValueError(f"message {whole.header.message_id} was shortened: these lines do not hold its text")
    return whole.header, unmarked_text(line for line in whole.lines if line[0] in (LINE_MARK, CONTINUATION_MARK))


def whole_deliveries(lines: Iterable[str]) -> Iterator[WholeDelivery]:
    """Each delivery that stands whole in `lines`, all its parts in order.

    A part whose predecessors are missing is passed over, and so are lines of other origin.
    """
    unfinished: dict[Header, list[str]] = {}
    next_part: dict[Header, int] = {}
    for header, block in _blocks(lines):
        writing = header.of_whole()
        if header.part == 1:
            unfinished[writing], next_part[writing] = [], 1
        if next_part.get(writing) != header.part:
            continue
        unfinished[writing] += block
        next_part[writing] += 1
        if header.part == header.parts:
            yield WholeDelivery(writing, tuple(unfinished.pop(writing)))
            del next_part[writing]


def parse_header(line: str) -> Header | None:
    """The header that `line` is, or None. Fields of a later version are passed over."""
    match = _HEADER.fullmatch(line)
    if match is None:
        return None
    fields = dict(field.split("=", 1) for field in match[4].split())
    part = _PART.fullmatch(fields.get("part", "1/1"))
    reply_to = fields.get("re")
    if part is None or part[1] > part[2] or not _MESSAGE_ID.fullmatch(reply_to or "0"):
        return None
    return Header(
        message_id=int(match[1]),
        room=match[2],
        sender=match[3],
        part=int(part[1]),
        parts=int(part[2]),
        age=fields.get("age", ""),
        reply_to=None if reply_to is None else int(reply_to),
        repeat=fields.get("repeat") == "1",
    )


def is_body_line(line: str) -> bool:
    """Whether `line` belongs to the header above it."""
    return line[:1] in (LINE_MARK, CONTINUATION_MARK, REST_MARK)


def flush_bytes(parts: Iterable[Part]) -> bytes:
    """What goes to the pipe for one flush."""
    return "".join(line + "\n" for part in parts for line in part.lines).encode()


def _first_flushes(text: str, units_max: int, count: int) -> list[list[str]]:
    """The marked lines of `text`, cut into at most `count` groups that each fit `units_max`."""
    return list(islice(_groups(marked_lines(text), units_max), count))


def _groups(lines: Iterable[str], units_max: int) -> Iterator[list[str]]:
    group: list[str] = []
    units = 0
    for line in lines:
        units += _units_of_line(line)
        if units > units_max:
            yield group
            group, units = [], _units_of_line(line)
        group.append(line)
    yield group


def _blocks(lines: Iterable[str]) -> Iterator[tuple[Header, list[str]]]:
    """Each header, and its line with the marked lines below it."""
    header: Header | None = None
    block: list[str] = []
    for line in lines:
        if header is not None and is_body_line(line):
            block.append(line)
            continue
        if header is not None:
            yield header, block
        header, block = parse_header(line), [line]
    if header is not None:
        yield header, block


def _units_of_line(line: str) -> int:
    return utf16_units(line) + len("\n")
