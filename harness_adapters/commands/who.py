"""`agent-channel who`: the roles that are held, and whether messages reach them now."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from channel.conversation import Conversation
from channel.membership import Seat
from channel.names import normalized
from harness_adapters.commands.deliveries_text import age_text, cut
from harness_adapters.commands.output import aligned, as_json, database_for_people, print_result, printable
from harness_adapters.commands.running import open_for_people
from harness_adapters.role_status import ACTIVE, state_of

_HEAD = ("ROOM", "ROLE", "HARNESS", "STATE", "SINCE", "PENDING", "DETAIL")


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return print_result(_do, database_for_people(database), options)


def parser() -> argparse.ArgumentParser:
    what = "List the roles that are held, with what is behind each and whether messages reach it now."
    command = argparse.ArgumentParser(
        prog="agent-channel who",
        description=what,
        epilog="states: active; offline (nothing gives it messages now: they wait); not loaded (a closed Codex thread: "
        "they run on resume); a person (who reads them with `history` or `tail`)",
    )
    command.add_argument("room", nargs="?", metavar="ROOM", help="only in this room")
    command.add_argument("--json", action="store_true", help="for programs: times in milliseconds since 1970")
    return command


async def _do(database: Path, options: argparse.Namespace) -> str:
    async with open_for_people(database, durable=False) as channel:
        if options.room is not None:
            await Conversation(channel.database).room_id(options.room)
        seats = [
            seat
            for seat in await channel.membership.seats()
            if options.room is None or seat.room == normalized(options.room)
        ]
        now_ms = channel.clock.now_ms()
    if options.json:
        return as_json({"roles": [_as_json(seat) for seat in seats]})
    if not seats:
        return "Nobody holds a role.\n"
    return aligned([_HEAD, *(_row(seat, now_ms) for seat in seats)])


def _row(seat: Seat, now_ms: int) -> tuple[str, ...]:
    role, state = seat.role, state_of(seat.role)
    away_since_ms = None if state == ACTIVE else role.offline_since_ms
    return (
        seat.room,
        role.name,
        role.harness,
        state,
        "" if away_since_ms is None else f"{age_text(now_ms - away_since_ms)} ago",
        str(role.waiting),
        cut(printable(role.detail if role.waiter_active else "")),
    )


def _as_json(seat: Seat) -> dict[str, Any]:
    role = seat.role
    return {
        "room": seat.room,
        "role": role.name,
        "harness": role.harness,
        "state": state_of(role),
        "connected": role.connected,
        "waiter_active": role.waiter_active,
        "offline_since_ms": role.offline_since_ms,
        "pending": role.waiting,
        "detail": role.detail,
    }
