"""`agent-channel trim`: takes away old messages that are handled, so that the file does not grow for ever."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from channel.trimming import Trimmed, Trimming
from harness_adapters.commands.argument_types import age_ms
from harness_adapters.commands.output import database_for_people, fail, print_result
from harness_adapters.commands.progress import progress_line
from harness_adapters.commands.running import open_for_people
from harness_adapters.composition import Channel


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return print_result(_trim, database_for_people(database), options)


def parser() -> argparse.ArgumentParser:
    what = "Remove old messages that are handled: seen, withdrawn, or taken by a session that has no transcript."
    command = argparse.ArgumentParser(prog="agent-channel trim", description=what)
    command.add_argument("--older-than", type=age_ms, required=True, metavar="AGE", help="such as 40m, 15h, 30d")
    command.add_argument("--dry-run", action="store_true", help="only count them")
    command.add_argument("--json", action="store_true", help="for programs")
    return command


async def _trim(database: Path, options: argparse.Namespace) -> str:
    done = Trimmed(0, 0)
    async with open_for_people(database, durable=False) as channel:
        before = database.stat().st_size
        with progress_line() as show:

            def note(trimmed: Trimmed) -> None:
                nonlocal done
                done = trimmed
                show(f"{_messages(done.removed)} {'to remove' if options.dry_run else 'removed'} …")

            try:
                await _remove(channel, options, note)
            except anyio.get_cancelled_exc_class():
                show("")
                fail(
                    f"stopped: {_messages(done.removed)} removed, and nothing is left half done. Run it again to go on."
                )
                raise
        after = database.stat().st_size
    if options.json:
        return json.dumps({**done._asdict(), "dry_run": options.dry_run, "bytes": after, "bytes_before": before}) + "\n"
    counts = f"removed, {done.kept:,} kept: not handled yet\n"
    if options.dry_run:
        return f"{_messages(done.removed)} would be {counts}"
    return f"{_messages(done.removed)} {counts}{database}: {_size(before)} before, {_size(after)} now\n"


async def _remove(channel: Channel, options: argparse.Namespace, note: Callable[[Trimmed], None]) -> None:
    trimming = Trimming(channel.database, channel.clock, note)
    if options.dry_run:
        await trimming.count(options.older_than)
    else:
        await trimming.trim(options.older_than)
        await trimming.give_back()


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _size(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"
