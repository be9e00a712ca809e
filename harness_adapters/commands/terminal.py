"""What standard output is: a terminal of some width that may be coloured, or something that a program reads."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

COLUMNS_MIN = 20
"""A narrower terminal is written to as if it had these."""

_EMOJI_STYLE = "\ufe0f"
"""Makes a narrow sign a wide picture."""


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """The terminal's columns; None where standard output is none."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def has_colour() -> bool:
    """Whether it may be coloured: a terminal, unless its user or its kind says no (https://no-color.org)."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def wrapped(line: str, columns: int) -> Iterator[str]:
    """A line of printable characters in pieces of `columns` at most, cut at blanks where there are some."""
    columns = max(columns, COLUMNS_MIN)
    start = used = 0
    blank = None
    for at, character in enumerate(line):
        wide = _columns_of(character)
        if used + wide > columns:
            end = at if blank is None else blank + 1
            yield line[start:end]
            start, blank = end, None
            used = sum(map(_columns_of, line[start:at]))
        used += wide
        if character == " ":
            blank = at
    yield line[start:]


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me") and character != _EMOJI_STYLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
