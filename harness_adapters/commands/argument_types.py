"""What several commands take: words of a person as values, or what is wrong with them."""

import argparse

from waiters.age import age_from_words


def age_ms(words: str) -> int:
    """`40m`, `15h` or `3d` in milliseconds."""
    try:
        return age_from_words(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
