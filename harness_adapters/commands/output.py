"""What a command prints, how it fails, and which file it opens."""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from channel.errors import ChannelError
from channel.place import default_database

PROGRAM = "agent-channel"

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def database_for_people(chosen: Path | None) -> Path:
    """The channel's file of a person's command: what --db says, else AGENT_CHANNEL_DB, else the default."""
    return Path(chosen or os.environ.get("AGENT_CHANNEL_DB") or default_database()).expanduser().absolute()


def print_result(command: Callable[..., Awaitable[str]], *arguments: object) -> int:
    """Run a command and print what it returns, or on stderr why it failed; the exit status. Raises as `run`."""
    from harness_adapters.commands.running import run  # it takes 0.1 s, and commands without a channel need none

    try:
        text = run(command, *arguments)
    except ChannelError as error:
        return fail(error)
    return show(text)


def show(text: str) -> int:
    """Print it as UTF-8, whatever the terminal's encoding; the exit status. As any filter, it ends with its reader."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stdout is None:
        return fail("the output can't be written: standard output is closed")
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except OSError as error:
        return fail_to_write(error)
    return EXIT_OK


def fail_to_write(error: OSError) -> int:
    """Say why, and drop what is still to be written, which would be tried again at the end; the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return fail(f"the output can't be written: {error.strerror}")


def end_with_reader() -> int:
    """End as a filter does whose reader is gone: by SIGPIPE, without a word."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPIPE)
    return EXIT_FAILED  # it is blocked


def fail(error: object) -> int:
    """Say on stderr why it can't be done; the exit status."""
    print(f"{PROGRAM}: {error}", file=sys.stderr)
    return EXIT_FAILED


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of one length as columns, two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def printable(text: str) -> str:
    """The text on one line, without anything that could steer a terminal or hide in it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
