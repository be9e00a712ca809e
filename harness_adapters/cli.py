"""`agent-channel`: commands for people, and the streamer that a session runs in its Monitor.

It imports neither mcp nor pydantic, which take over a second to load, and of the commands only the one that runs.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """`module`, under harness_adapters.commands, has `run` and `parser`."""

    module: str
    summary: str


COMMANDS = {
    "install": Command("install", "register the server with Claude Code, Codex and others"),
    "status": Command("status", "which agents are here, and what each is told to run"),
    "uninstall": Command("uninstall", "take back what install did"),
    "monitor": Command("monitor", "print a session's messages as they come (run it in Monitor)"),
    "rooms": Command("rooms", "list the rooms"),
    "who": Command("who", "list the roles, and whether messages reach them now"),
    "history": Command("history", "print what was said in a room"),
    "tail": Command("tail", "print what is said in a room as it comes"),
    "send": Command("send", "send a message as a person"),
    "invite": Command("invite", "print the text that brings an agent into a room"),
    "message": Command("message", "print one message whole"),
    "deliveries": Command("deliveries", "list, show, look for, resend or drop deliveries"),
    "view": Command("view", "rooms, messages and deliveries in a browser, as they happen"),
    "doctor": Command("doctor", "try out what messages need; --probe: send one and time it"),
    "trim": Command("trim", "remove old messages that are handled"),
    "completion": Command("completion", "print what makes bash or zsh complete these commands"),
}

EXIT_STATUSES = """\
exit status: 0 done; 1 refused or failed, and standard error says why; 2 wrongly called; 130 stopped by Ctrl-C"""
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""By Ctrl-C, without a traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status, as EXIT_STATUSES says."""
    if sys.platform == "win32":
        sys.exit("agent-channel does not run on Windows yet: it needs FIFOs and unix sockets.")
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses it twice gets no traceback of the second
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\n")  # after the ^C that the terminal shows
        return EXIT_INTERRUPTED
    finally:
        _write_help()


def _write_help() -> None:
    """What argparse printed is written only now; where nobody reads it any more, end as any filter does."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    except OSError as error:
        from harness_adapters.commands.output import fail_to_write

        sys.exit(fail_to_write(error))


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        return _show_version()
    if options.command is None:
        parser.print_help()
        return EXIT_USAGE
    module = import_module(f"harness_adapters.commands.{COMMANDS[options.command].module}")
    status: int = module.run(options.db, options.arguments)
    return status


def _show_version() -> int:
    from importlib.metadata import version  # the commands need neither

    from harness_adapters.commands.output import PROGRAM, show

    return show(f"{PROGRAM} {version(PROGRAM)}\n")


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="agent-channel",
        description="Messages between coding agents in different harnesses, over one local channel.",
        epilog="commands (each has --help):\n"
        + "\n".join(f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items())
        + f"\n\n{EXIT_STATUSES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--db", type=Path, help="the channel's file (default: AGENT_CHANNEL_DB, or ~/.agent-channel/channel.db)"
    )
    parser.add_argument("--version", action="store_true", help="print the version of this package, and exit")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
