"""`agent-channel view`: the channel in a browser, as it happens.

The page's address carries its token. It goes to the browser in a file of the account: as an argument of the browser's
process every account of the machine could read it.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio

from channel.errors import ChannelError
from harness_adapters.commands.output import EXIT_OK, database_for_people, fail

PORT_MAX = 65_535

_HINT = "Whoever has this address reads and decides as you do. Ctrl-C ends the view."

_FORWARD = """<!doctype html>
<meta charset="utf-8">
<title>agent-channel</title>
<meta http-equiv="refresh" content="0; url={address}">
"""


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    from harness_adapters.view.serving import serve  # what serves is loaded by nobody else

    on_terminal = sys.stdout.isatty()
    opens = on_terminal and not options.no_open and not options.json and _has_browser(os.environ)

    with _forwarding() as forward:

        def announce(address: str) -> None:
            print(json.dumps({"address": address}) if options.json else address, flush=True)
            if on_terminal and not options.json:
                print(_HINT, file=sys.stderr, flush=True)
            if opens:
                forward.write_text(_FORWARD.format(address=address), encoding="utf-8")
                webbrowser.open(forward.as_uri())

        try:
            ended_by = anyio.run(serve, database_for_people(database), options.port, announce)
        except ChannelError as error:
            return fail(error)
    if ended_by is signal.SIGINT:
        raise KeyboardInterrupt  # as every command, for the exit status
    return EXIT_OK


def parser() -> argparse.ArgumentParser:
    what = "Show rooms, messages and deliveries as they happen, in a browser on this machine."
    command = argparse.ArgumentParser(prog="agent-channel view", description=what)
    command.add_argument("--port", type=_port, default=0, metavar="N", help="of 127.0.0.1 (default: one that is free)")
    command.add_argument("--no-open", action="store_true", help="only print the address; piped, nothing is opened")
    command.add_argument("--json", action="store_true", help="for programs: the address as JSON")
    return command


@contextmanager
def _forwarding() -> Iterator[Path]:
    """Where a file can be that only this account reads; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="agent-channel-view-"))  # 0700
    try:
        yield folder / "open.html"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_browser(environment: Mapping[str, str]) -> bool:
    """A browser with a window, on this side of an ssh connection: one for terminals would take this terminal."""
    if "SSH_CONNECTION" in environment:
        return False
    return sys.platform == "darwin" or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _port(words: str) -> int:
    if not words.isdecimal() or int(words) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{words!r} is no port: write a number from 1 to {PORT_MAX:,}")
    return int(words)
