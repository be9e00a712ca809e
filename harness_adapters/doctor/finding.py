"""What one look came to."""

from enum import Enum
from typing import NamedTuple


class Level(str, Enum):
    PASS = "pass"  # noqa: S105 (no password)
    WARN = "warn"
    """All works, but a person should know."""
    FAIL = "fail"
    """Something does not work, or not safely, until somebody acts."""


class Finding(NamedTuple):
    """`proved`: what was seen, and where. `to_do`: what a person does about it; "" if nothing.

    `times_ms`: from a message's sending to each thing that happened to it, where one was sent.
    """

    level: Level
    proved: str
    to_do: str = ""
    times_ms: tuple[tuple[str, int], ...] = ()


class Examined(NamedTuple):
    """`subject`: a word for what was looked at."""

    subject: str
    finding: Finding


def passed(proved: str) -> Finding:
    return Finding(Level.PASS, proved)


def warned(proved: str, to_do: str) -> Finding:
    return Finding(Level.WARN, proved, to_do)


def failed(proved: str, to_do: str) -> Finding:
    return Finding(Level.FAIL, proved, to_do)
