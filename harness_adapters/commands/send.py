"""`agent-channel send`: a person sends a message, under a role of their own."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from channel.errors import BadText
from channel.names import TEXT_CHARACTERS_MAX
from channel.presence import RoleView
from channel.sending import Sent
from harness_adapters.commands.output import aligned, as_json, database_for_people, fail, print_result, printable
from harness_adapters.commands.own_role import own_person, people_of
from harness_adapters.commands.running import open_for_people
from harness_adapters.commands.terminal import is_terminal
from harness_adapters.role_status import in_words

FROM_STDIN = "-"
UTF8_BYTES_A_CHARACTER_MAX = 4


def run(database: Path | None, arguments: Sequence[str]) -> int:
    command = parser()
    options = command.parse_intermixed_args(arguments)  # --json may stand anywhere
    *to, text = options.words
    if bool(to) == options.all:
        command.error("name one role or more before the text, or give --all")
    try:
        text = _text_of_stdin() if text == FROM_STDIN else text
    except BadText as error:
        return fail(error)
    status = print_result(_do, database_for_people(database), options, text, to or None)
    if is_terminal() and not options.json and not status:
        print(f"Answers: agent-channel tail {shlex.quote(options.room)}", file=sys.stderr)
    return status


def parser() -> argparse.ArgumentParser:
    what = "Send a message to roles of a room, as a participant with a role of your own."
    command = argparse.ArgumentParser(
        prog="agent-channel send",
        usage="%(prog)s [--as NAME] [--json] ROOM (TO... | --all) TEXT",
        description=what,
        epilog="You join the room with the first message. An agent's role is never taken over. What is sent to your "
        "role is in `history` and `tail`. To an agent you are a peer as any other: agents may run this command too.",
    )
    command.add_argument("room", metavar="ROOM")
    command.add_argument(
        "words", nargs="+", metavar="TO... TEXT", help="the recipients' names, then the text; -: read it"
    )
    command.add_argument("--all", action="store_true", help="to all others in the room: then name nobody")
    command.add_argument("--as", dest="name", metavar="NAME", help="your role's name, kept (default: person)")
    command.add_argument("--json", action="store_true", help="for programs")
    return command


async def _do(database: Path, options: argparse.Namespace, text: str, to: Sequence[str] | None) -> str:
    async with open_for_people(database, durable=True) as channel:
        with anyio.CancelScope(shield=True):  # once it is begun it is done, and said
            sent = await people_of(channel).send(own_person(channel), options.room, text, to, options.name)
    if options.json:
        return as_json(_as_json(sent))
    skipped = f"skipped, absent for over a week: {', '.join(view.name for view in sent.skipped)}\n"
    return (
        f"sent as message {sent.message_id} from {sent.sender.name}\n"
        + aligned([(view.name, printable(in_words(view, new=1))) for view in sent.recipients])
        + (skipped if sent.skipped else "")
    )


def _as_json(sent: Sent) -> dict[str, object]:
    def words(views: Sequence[RoleView], new: int) -> dict[str, str]:
        return {view.name: in_words(view, new) for view in views}

    return {
        "message_id": sent.message_id,
        "room": sent.sender.room,
        "sender": sent.sender.name,
        "to": words(sent.recipients, 1),
        "skipped": words(sent.skipped, 0),
    }


def _text_of_stdin() -> str:
    """All of it but the end of its last line, which editors and `echo` add. Raises BadText."""
    if sys.stdin is None:
        raise BadText("standard input is closed", "Pipe the text in, or give it as an argument.")
    if sys.stdin.isatty() and sys.stderr is not None:
        print("Write the message, then Ctrl-D on a line of its own.", file=sys.stderr)
    data = sys.stdin.buffer.read(TEXT_CHARACTERS_MAX * UTF8_BYTES_A_CHARACTER_MAX + 2)
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadText(f"it is no UTF-8 (byte {error.start})", "Convert it first.") from error
