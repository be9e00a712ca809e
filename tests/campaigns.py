"""Long programs that a person starts and waits for: how far they are, and how they end at Ctrl-C."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from harness_adapters.commands import running
from harness_adapters.commands.output import end_with_reader
from harness_adapters.commands.progress import Show, progress_line

Result = TypeVar("Result")

INTERRUPTED = 130


def until_interrupted(main: Callable[[], int]) -> int:
    """The exit status of `main`; at Ctrl-C, after what it has to clean up, INTERRUPTED and no traceback.

    Where nobody reads its output any more it ends likewise, by SIGPIPE.
    """
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nStopped: no result, and nothing is left behind.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return end_with_reader()
    return status


def run(campaign: Callable[..., Awaitable[Result]], *arguments: object) -> Result:
    """What it returns. At Ctrl-C it is cancelled where it can be, and not in the middle of a statement."""
    return running.run(campaign, *arguments)


class Say(Protocol):
    """Prints a line among the progress."""

    def __call__(self, line: str) -> None: ...


@contextmanager
def progress() -> Iterator[tuple[Show, Say]]:
    """What shows how far it is, on a terminal; and what prints a line that stays."""
    with progress_line() as show:

        def say(line: str) -> None:
            show("")
            print(line, flush=True)

        yield show, say
