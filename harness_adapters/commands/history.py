"""`agent-channel history`: what was said in a room."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from channel.conversation import Conversation, Said
from channel.errors import ChannelError, StoreUnavailable
from channel.names import TEXT_CHARACTERS_MAX
from channel.searching import first_with, newest_with
from harness_adapters.commands.argument_types import Since, number_to, since
from harness_adapters.commands.conversation_text import SHOWN_CHARACTERS_MAX, said_json, said_text
from harness_adapters.commands.output import EXIT_OK, as_json, database_for_people, fail, show
from harness_adapters.commands.own_role import note_shown
from harness_adapters.commands.progress import progress_line
from harness_adapters.commands.running import open_for_people
from harness_adapters.commands.running import run as run_until_done
from harness_adapters.commands.terminal import has_colour, is_terminal, width
from harness_adapters.composition import Channel

LIMIT_DEFAULT = 50
LIMIT_MAX = 10_000


class _Found(NamedTuple):
    """`are_more`: messages of the kind before these, or after these where it began at one."""

    messages: Sequence[Said]
    are_more: bool


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    path = database_for_people(database)
    try:
        found = run_until_done(_find, path, options)
    except ChannelError as error:
        return fail(error)
    if options.json:
        messages = [said_json(each, options.room) for each in found.messages]
        return show(as_json({"messages": messages, "are_more": found.are_more}))
    status = show("\n".join(said_text(each, width(), bold=has_colour()) for each in found.messages))
    if status == EXIT_OK and is_terminal():
        _say_what_else_there_is(found, options)
        _note_shown(path, found.messages)
    return status


def parser() -> argparse.ArgumentParser:
    what = "Print what was said in a room, the newest messages last, each with its number, sender and recipients."
    command = argparse.ArgumentParser(
        prog="agent-channel history",
        description=what,
        epilog="A recipient's state stands behind it where the message has not reached it. Control characters of a "
        "text are shown as \\x1b and the like, and its lines are set in; --json has it as it was sent.",
    )
    command.add_argument("room", metavar="ROOM")
    command.add_argument(
        "--since",
        type=since,
        metavar="AGE|ID",
        help="from then on, the first messages: 40m, 15h, 3d, or after message ID",
    )
    command.add_argument(
        "--search", metavar="WORDS", help="only messages that hold all these words, in capitals or not"
    )
    command.add_argument(
        "--limit", type=number_to(LIMIT_MAX), default=LIMIT_DEFAULT, metavar="N", help="at most (default: 50)"
    )
    command.add_argument("--whole", action="store_true", help="long texts whole, not only their beginning")
    command.add_argument("--json", action="store_true", help="for programs: texts whole, times in ms since 1970")
    return command


async def _find(database: Path, options: argparse.Namespace) -> _Found:
    async with open_for_people(database, durable=False) as channel:
        conversation = Conversation(channel.database)
        await conversation.room_id(options.room)
        after_id = None if options.since is None else await _after_id(channel, conversation, options.since)
        found = await _messages(conversation, options, after_id)
    limit = options.limit
    shown = found[-limit:] if after_id is None else found[:limit]
    return _Found(shown, are_more=len(found) > limit)


async def _messages(conversation: Conversation, options: argparse.Namespace, after_id: int | None) -> Sequence[Said]:
    """One more than the limit, if there are."""
    words, limit = (options.search or "").split(), options.limit + 1
    characters = TEXT_CHARACTERS_MAX if options.json or options.whole else SHOWN_CHARACTERS_MAX
    if not words:
        if after_id is None:
            return await conversation.page(options.room, limit, characters)
        return await conversation.after(options.room, after_id, limit, characters)
    with progress_line() as show:

        def on_read(count: int) -> None:
            show(f"{count:,} messages searched …")

        if after_id is None:
            found = await newest_with(conversation, options.room, words, limit, on_read)
        else:
            found = await first_with(conversation, options.room, words, after_id, limit, on_read)
    return [said._replace(text_begins=said.text_begins[:characters]) for said in found]


async def _after_id(channel: Channel, conversation: Conversation, since: Since) -> int:
    if since.message_id is not None:
        return since.message_id
    return await conversation.last_before(channel.clock.now_ms() - since.age_ms)


def _say_what_else_there_is(found: _Found, options: argparse.Namespace) -> None:
    """On standard error: it is no part of the history."""
    if not found.messages:
        print("Nothing was said there that is like that.", file=sys.stderr)
    elif found.are_more and options.since is not None:
        print(f"There are more: --since {found.messages[-1].message_id}, or --limit.", file=sys.stderr)
    elif found.are_more:
        print("There are earlier ones: see --limit and --since.", file=sys.stderr)


def _note_shown(database: Path, messages: Sequence[Said]) -> None:
    try:
        run_until_done(note_shown, database, messages)
    except StoreUnavailable:
        pass  # they stay unread, and are noted when they are shown again
