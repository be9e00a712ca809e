"""`agent-channel tail`: what is said in a room, as it comes."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from channel.conversation import Conversation, Said
from channel.errors import ChannelError, StoreBusy, StoreFull, StoreReadOnly
from channel.names import TEXT_CHARACTERS_MAX
from channel.wakeups import wait_for_change
from harness_adapters.claude.pipe import OutputPipe, ReaderGone
from harness_adapters.commands.argument_types import number_to
from harness_adapters.commands.conversation_text import SHOWN_CHARACTERS_MAX, said_json, said_text
from harness_adapters.commands.output import EXIT_OK, database_for_people, end_with_reader, fail
from harness_adapters.commands.own_role import note_shown_in
from harness_adapters.commands.running import open_for_people
from harness_adapters.commands.running import run as run_until_done
from harness_adapters.commands.terminal import has_colour, is_terminal, width
from harness_adapters.composition import Channel
from waiters.background import background_tasks

LIMIT_DEFAULT = 10
LIMIT_MAX = 10_000

LOOK_S = 0.5
"""Between two looks whether the file changed. Bells wake only whom a message is for; this look takes 0.1 ms."""

READ_AT_ONCE = 100


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if sys.stdout is None:
        return fail("there is nothing to print to: standard output is closed")
    try:
        run_until_done(_follow, database_for_people(database), options)
    except ReaderGone:
        return end_with_reader()
    except ChannelError as error:
        return fail(error)
    except OSError as error:
        return fail(f"the output can't be written: {error.strerror}")
    return EXIT_OK


def parser() -> argparse.ArgumentParser:
    what = "Print the newest messages of a room, and then each as it comes, until Ctrl-C."
    command = argparse.ArgumentParser(prog="agent-channel tail", description=what)
    command.add_argument("room", metavar="ROOM")
    command.add_argument(
        "--limit",
        type=number_to(LIMIT_MAX),
        default=LIMIT_DEFAULT,
        metavar="N",
        help="of those that were (default: 10)",
    )
    command.add_argument("--whole", action="store_true", help="long texts whole, not only their beginning")
    command.add_argument("--json", action="store_true", help="for programs: a message a line, texts whole")
    return command


async def _follow(database: Path, options: argparse.Namespace) -> None:
    async with open_for_people(database, durable=False) as channel, background_tasks() as tasks:
        pipe = OutputPipe(sys.stdout.fileno(), channel.clock)
        with anyio.CancelScope() as reading:
            tasks.start_soon(_end_with_reader, pipe, reading)
            await _print_as_it_comes(channel, pipe, options)
        raise ReaderGone("nobody reads the output any more")


async def _print_as_it_comes(channel: Channel, pipe: OutputPipe, options: argparse.Namespace) -> None:
    conversation = Conversation(channel.database)
    await conversation.room_id(options.room)
    characters = TEXT_CHARACTERS_MAX if options.json or options.whole else SHOWN_CHARACTERS_MAX
    seen = await channel.database.data_version()  # before what it tells of
    messages = await conversation.page(options.room, options.limit, characters)
    last_id = 0
    unrecorded: Sequence[Said] = ()
    while True:
        if messages:
            blank = "" if options.json else "\n"
            printed = blank.join(_printed(each, options) for each in messages)
            await pipe.write(f"{blank if last_id else ''}{printed}".encode())
            unrecorded = [*unrecorded, *messages] if is_terminal() else ()
            last_id = messages[-1].message_id
        else:
            seen = await wait_for_change(channel.database, channel.clock, seen, LOOK_S)
        unrecorded = await _unrecorded(channel, unrecorded)
        messages = await conversation.after(options.room, last_id, READ_AT_ONCE, characters)


async def _unrecorded(channel: Channel, shown: Sequence[Said]) -> Sequence[Said]:
    """Record that they were shown; those for which that can't be written now, which is no reason to show no more."""
    try:
        await note_shown_in(channel, shown)
    except (StoreBusy, StoreFull, StoreReadOnly):
        return shown
    return ()


def _printed(said: Said, options: argparse.Namespace) -> str:
    if options.json:
        return json.dumps(said_json(said, options.room)) + "\n"
    return said_text(said, width(), bold=has_colour())


async def _end_with_reader(pipe: OutputPipe, reading: anyio.CancelScope) -> None:
    await pipe.wait_dead()
    reading.cancel()
