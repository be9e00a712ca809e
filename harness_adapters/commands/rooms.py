"""`agent-channel rooms`: the rooms there are, those with the newest messages first."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from channel.conversation import Conversation, RoomSummary
from channel.membership import Seat
from harness_adapters.commands.deliveries_text import age_text
from harness_adapters.commands.output import aligned, as_json, database_for_people, print_result
from harness_adapters.commands.running import open_for_people
from harness_adapters.role_status import ACTIVE, state_of

ROOMS_MAX = 1_000
"""Shown; a person has a handful."""

_HEAD = ("ROOM", "ROLES", "ACTIVE", "PENDING", "LAST MESSAGE")


class _Room(NamedTuple):
    name: str
    policy: str
    roles: int
    active: int
    pending: int
    newest_message_id: int | None
    newest_at_ms: int | None


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return print_result(_do, database_for_people(database), options)


def parser() -> argparse.ArgumentParser:
    what = "List the rooms, those with the newest messages first."
    command = argparse.ArgumentParser(prog="agent-channel rooms", description=what)
    command.add_argument("--json", action="store_true", help="for programs: times in milliseconds since 1970")
    return command


async def _do(database: Path, options: argparse.Namespace) -> str:
    async with open_for_people(database, durable=False) as channel:
        conversation = Conversation(channel.database)
        seats = await channel.membership.seats()
        summaries = await conversation.rooms(ROOMS_MAX)
        rooms = [await _room(conversation, each, seats) for each in summaries]
        now_ms = channel.clock.now_ms()
    if options.json:
        return as_json({"rooms": [each._asdict() for each in rooms]})
    if not rooms:
        return "There is no room yet: a session makes one when it joins it.\n"
    return aligned([_HEAD, *(_row(each, now_ms) for each in rooms)])


async def _room(conversation: Conversation, summary: RoomSummary, seats: Sequence[Seat]) -> _Room:
    roles = [seat.role for seat in seats if seat.room == summary.name]
    newest = await conversation.page(summary.name, 1, 0)
    return _Room(
        name=summary.name,
        policy=summary.policy,
        roles=len(roles),
        active=sum(state_of(role) == ACTIVE for role in roles),
        pending=sum(role.waiting for role in roles),
        newest_message_id=summary.newest_message_id,
        newest_at_ms=newest[0].created_at_ms if newest else None,
    )


def _row(room: _Room, now_ms: int) -> tuple[Any, ...]:
    last = "none" if room.newest_at_ms is None else f"{age_text(now_ms - room.newest_at_ms)} ago"
    return room.name, str(room.roles), str(room.active), str(room.pending), last
