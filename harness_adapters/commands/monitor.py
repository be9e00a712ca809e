"""`agent-channel monitor`: the streamer that a session runs in its Monitor."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import anyio

from channel.place import default_database
from harness_adapters.claude.monitor_stream import stream
from harness_adapters.claude.pacing import MONITOR_LIMITS, UNLIMITED


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    # No variable of ours decides here: the server that wrote this command line did.
    path = (options.db or database or default_database()).expanduser().absolute()
    limits = UNLIMITED if options.pace == "off" else MONITOR_LIMITS
    return anyio.run(stream, path, options.session, limits, None, options.restartable)


def parser() -> argparse.ArgumentParser:
    what = "Print a session's messages as they come. A session runs it in its Monitor, or in what does the same."
    command = argparse.ArgumentParser(prog="agent-channel monitor", description=what)
    command.add_argument("--db", type=Path, help="the channel's file")
    command.add_argument("--session", metavar="KEY", help="the session, where it can't be found from the processes")
    command.add_argument(
        "--pace", choices=("monitor", "off"), default="monitor", help="off: for a host without Monitor's limits"
    )
    command.add_argument(
        "--restartable",
        action="store_true",
        help="it is run again in the same Monitor when it was killed: begin slowly, and on a line of its own",
    )
    return command
