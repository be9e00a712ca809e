"""`agent-channel invite`: the text that brings an agent into a room, to be pasted into its session."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from channel.conversation import Conversation
from channel.errors import NameTaken, UnknownRole, UnknownRoom
from channel.names import check_name
from channel.presence import RoleView
from harness_adapters.commands.output import as_json, database_for_people, print_result
from harness_adapters.commands.running import open_for_people


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return print_result(_do, database_for_people(database), options)


def parser() -> argparse.ArgumentParser:
    what = "Print an invitation to paste into the session of the agent that is to join. Nothing is stored."
    command = argparse.ArgumentParser(prog="agent-channel invite", description=what)
    command.add_argument("room", metavar="ROOM")
    command.add_argument("role", metavar="ROLE", help="the name that the agent is to join under; a free one")
    command.add_argument("--purpose", type=_one_line, metavar="TEXT", help="what it is for, in one line")
    command.add_argument("--handoff", metavar="ROLE", help="whom to ask first (default: the room's only role)")
    command.add_argument("--json", action="store_true", help="for programs")
    return command


async def _do(database: Path, options: argparse.Namespace) -> str:
    room, role = check_name(options.room, "room"), check_name(options.role, "role")
    roles = await _roles(database, room)
    names = [view.name for view in roles]
    if role in names:
        raise NameTaken(room, role)
    handoff = check_name(options.handoff, "role") if options.handoff is not None else None
    if handoff is not None and handoff not in names:
        raise UnknownRole(room, handoff, names)
    if handoff is None and len(names) == 1:
        [handoff] = names
    text = invitation(room, role, options.purpose, handoff)
    return as_json({"room": room, "role": role, "handoff": handoff, "text": text}) if options.json else text


def invitation(room: str, role: str, purpose: str | None, handoff: str | None) -> str:
    """The shape that the server's instructions teach agents to write: these lines and nothing else."""
    lines = [
        purpose or f"You are wanted in the room {room}.",
        f"First ask {handoff} what to do." if handoff else "",
        f"Call join({json.dumps(room, ensure_ascii=False)}, {json.dumps(role, ensure_ascii=False)}) of agent-channel.",
        "In Claude Code: then run the command that join returns in Monitor.",
    ]
    return "".join(f"{line}\n" for line in lines if line)


async def _roles(database: Path, room: str) -> list[RoleView]:
    """None where there is no channel or no such room yet: the first `join` makes both."""
    if not database.exists():
        return []
    async with open_for_people(database, durable=False) as channel:
        try:
            room_id = await Conversation(channel.database).room_id(room)
        except UnknownRoom:
            return []
        return await channel.membership.roles_in(room_id)


def _one_line(words: str) -> str:
    if not words.strip() or not words.isprintable():
        raise argparse.ArgumentTypeError("it must be one line of text")
    return words
