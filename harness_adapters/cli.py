"""`agent-channel`: commands for people, and the streamer that a session runs in its Monitor.

It imports neither mcp nor pydantic, which take over a second to load.
"""

import argparse
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

PROGRAM = "agent-channel"

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status: 0 done, 1 failed (the reason is on stderr), 2 wrongly called."""
    if sys.platform == "win32":
        sys.exit("agent-channel does not run on Windows yet: it needs FIFOs and unix sockets.")
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if options.command == "deliveries":
        return _deliveries(options, rest)
    if options.command == "trim":
        return _trim(options, rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "monitor":
        return _monitor(options)
    if options.command == "message":
        return _message(options)
    parser.print_help()
    return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Messages between coding agents in different harnesses, over one local channel."
    )
    parser.add_argument(
        "--db", type=Path, help="the channel's file (default: ~/.agent-channel/channel.db, or AGENT_CHANNEL_DB)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    monitor = commands.add_parser("monitor", help="print a session's messages as they come (run it in Monitor)")
    monitor.add_argument("--db", type=Path, dest="monitor_db", help="the channel's file")
    monitor.add_argument("--session", metavar="KEY", help="the session, where it can't be found from the processes")
    monitor.add_argument(
        "--pace", choices=("monitor", "off"), default="monitor", help="off: for a host without Monitor's limits"
    )
    message = commands.add_parser("message", help="print one message whole")
    message.add_argument("message_id", metavar="ID", type=int)
    message.add_argument("--page", metavar="K", type=int, help="only the K-th part of a long text, from 1")
    # These take their arguments apart themselves, so that a streamer starts without what they need.
    commands.add_parser("deliveries", add_help=False, help="list, show, look for, resend or drop deliveries")
    commands.add_parser("trim", add_help=False, help="remove old messages that are handled")
    return parser


def _monitor(options: argparse.Namespace) -> int:
    import anyio

    from harness_adapters.claude.monitor_stream import stream
    from harness_adapters.claude.pacing import MONITOR_LIMITS, UNLIMITED
    from harness_adapters.composition import default_database

    # No variable of ours decides here: the server that wrote this command line did.
    database = (options.monitor_db or options.db or default_database()).expanduser().absolute()
    limits = UNLIMITED if options.pace == "off" else MONITOR_LIMITS
    return anyio.run(stream, database, options.session, limits)


def _message(options: argparse.Namespace) -> int:
    import anyio

    from channel.errors import ChannelError
    from harness_adapters.claude.paging import paginate

    try:
        message = anyio.run(_read_message, _database_for_people(options), options.message_id)
        if options.page is None:
            return _show(message)
        page = paginate(message, options.page)
    except (ChannelError, ValueError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return EXIT_FAILED
    status = _show(page.text)
    if page.number < page.count:
        print(f"\n{PROGRAM}: page {page.number} of {page.count}; the next is --page {page.number + 1}", file=sys.stderr)
    return status


def _deliveries(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    from harness_adapters.deliveries_command import run

    return _print(run, _database_for_people(options), arguments)


def _trim(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    from harness_adapters.trim_command import run

    def show(progress: str) -> None:
        print(f"\r{progress}\x1b[K", end="", file=sys.stderr, flush=True)

    def ignore(_progress: str) -> None:
        pass

    on_terminal = sys.stderr.isatty()
    try:
        return _print(run, _database_for_people(options), arguments, show if on_terminal else ignore)
    finally:
        if on_terminal:
            show("")


def _print(command: Callable[..., Awaitable[str]], *arguments: object) -> int:
    """Run a command and print what it returns."""
    import anyio

    from channel.errors import ChannelError

    try:
        text = anyio.run(command, *arguments)
    except ChannelError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return EXIT_FAILED
    return _show(text)


def _show(text: str) -> int:
    """Print it as UTF-8, whatever the terminal's encoding; the exit status. As any filter, it ends with its reader."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except OSError as error:
        print(f"{PROGRAM}: the output can't be written: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


async def _read_message(database: Path, message_id: int) -> str:
    from harness_adapters.composition import open_channel

    async with open_channel(database, durable=False, create=False) as channel:
        return (await channel.deliveries.message(message_id)).text


def _database_for_people(options: argparse.Namespace) -> Path:
    from harness_adapters.composition import default_database

    chosen = options.db or os.environ.get("AGENT_CHANNEL_DB") or default_database()
    return Path(chosen).expanduser().absolute()


if __name__ == "__main__":
    raise SystemExit(main())
