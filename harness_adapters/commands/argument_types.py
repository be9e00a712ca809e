"""What several commands take: words of a person as values, or what is wrong with them."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from channel.messages import ID_DIGITS_MAX
from waiters.age import age_from_words


class Since(NamedTuple):
    """From where on: after a message, or the last `age_ms`."""

    message_id: int | None
    age_ms: int


def age_ms(words: str) -> int:
    """`40m`, `15h` or `3d` in milliseconds."""
    try:
        return age_from_words(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def since(words: str) -> Since:
    """An age, or a message's number."""
    if words.isdecimal() and len(words) <= ID_DIGITS_MAX:
        return Since(int(words), 0)
    try:
        return Since(None, age_from_words(words))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{words!r} is neither an age (40m, 15h, 3d) nor the number of a message"
        ) from error


def number_to(highest: int) -> Callable[[str], int]:
    """What takes a number from 1 to `highest`."""

    def number(words: str) -> int:
        if not words.isdecimal() or not 1 <= len(words) <= ID_DIGITS_MAX or not 1 <= int(words) <= highest:
            raise argparse.ArgumentTypeError(f"{words!r} is no number from 1 to {highest:,}")
        return int(words)

    return number
