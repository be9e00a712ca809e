"""`agent-channel message`: one message whole, exactly as it was sent; on a terminal, without what could steer it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from channel.errors import ChannelError
from channel.messages import Message
from harness_adapters.claude.paging import paginate
from harness_adapters.commands.conversation_text import printable_lines
from harness_adapters.commands.output import PROGRAM, as_json, database_for_people, fail, show
from harness_adapters.commands.running import open_for_people
from harness_adapters.commands.running import run as run_until_done
from harness_adapters.commands.terminal import is_terminal


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    try:
        message = run_until_done(_read, database_for_people(database), options.message_id)
        if options.json:
            return show(as_json(message._asdict()))
        text = printable_lines(message.text) + "\n" if is_terminal() else message.text
        if options.page is None:
            return show(text)
        page = paginate(text, options.page)
    except (ChannelError, ValueError) as error:
        return fail(error)
    status = show(page.text)
    if page.number < page.count:
        print(f"\n{PROGRAM}: page {page.number} of {page.count}; the next is --page {page.number + 1}", file=sys.stderr)
    return status


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        prog="agent-channel message",
        description="Print one message whole.",
        epilog="On a terminal its control characters are shown as \\x1b and the like; a pipe gets it as it was sent.",
    )
    command.add_argument("message_id", metavar="ID", type=int)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--page", metavar="K", type=int, help="only the K-th part of a long text, from 1")
    form.add_argument("--json", action="store_true", help="for programs: all of it, and who sent it when")
    return command


async def _read(database: Path, message_id: int) -> Message:
    async with open_for_people(database, durable=False) as channel:
        return await channel.deliveries.message(message_id)
