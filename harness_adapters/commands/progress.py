"""How far long work has come: one line on standard error that is written over, and only where a terminal shows it."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[str], None]
"""Takes what the line says now; "" takes it away."""

_ERASE = "\r\x1b[K"


@contextmanager
def progress_line() -> Iterator[Show]:
    """What shows progress, and leaves nothing on the terminal at its end, whatever ends it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _words: None
        return
    is_shown = False

    def show(words: str) -> None:
        nonlocal is_shown
        if words or is_shown:
            # A line that is as wide as the terminal can't be erased as one.
            print(_ERASE + words[: _columns() - 1], end="", file=sys.stderr, flush=True)
        is_shown = bool(words)

    try:
        yield show
    finally:
        show("")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
