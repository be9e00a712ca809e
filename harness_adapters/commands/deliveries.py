"""`agent-channel deliveries`: what became of messages, and what a person does about one that is stuck.

The rules are in `channel/decisions.py`; here the arguments are taken apart and the answer is put into words.
"""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from channel.decisions import Decisions
from channel.delivery_states import State
from channel.errors import ChannelError
from channel.inspection import Inspected, Inspection
from harness_adapters.commands.argument_types import age_ms, number_to
from harness_adapters.commands.deliveries_text import list_text, look_text, show_text
from harness_adapters.commands.output import as_json as to_json
from harness_adapters.commands.output import database_for_people, print_result
from harness_adapters.commands.running import open_for_people
from harness_adapters.composition import Channel

if TYPE_CHECKING:  # what reaches harnesses takes as long to load as all else; only what looks there needs it
    from harness_adapters.one_look import Look

LIST_DEFAULT = 50
LIST_MAX = 10_000
"""Each is read with its role, one by one; a larger list is for SQL."""

Report = tuple[str, Any]
"""What to print: as text, and as JSON."""


class _MayBeForced(ChannelError):
    """Refused, with the option that goes past it."""

    def __init__(self, refused: ChannelError) -> None:
        super().__init__(f"{refused} With --force it is sent all the same, and may be read twice.")


Command = Callable[[Channel, Inspection, argparse.Namespace], Awaitable[Report]]


def run(database: Path | None, arguments: Sequence[str]) -> int:
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = ["list", *arguments]
    options = parser().parse_args(arguments)
    return print_result(_do, database_for_people(database), options)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="agent-channel deliveries", description="What became of messages, delivery by delivery."
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, run: Command, what: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=what, description=what)
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="for programs: times in milliseconds since 1970")
        if run is not _list:
            command.add_argument("delivery", metavar="ID", help="a delivery's id, or MESSAGE@ROLE")
        return command

    listing = add("list", _list, "List deliveries, the newest first (the default).")
    states = [state.value for state in State]
    listing.add_argument(
        "--state",
        action="append",
        choices=states,
        default=[],
        metavar="STATE",
        help=f"one of {', '.join(states)}; may be repeated",
    )
    listing.add_argument("--room", help="only in this room")
    listing.add_argument("--role", help="only to this role")
    listing.add_argument("--older-than", type=age_ms, default=0, metavar="AGE", help="sent so long ago: 40m, 15h, 3d")
    listing.add_argument(
        "--limit", type=number_to(LIST_MAX), default=LIST_DEFAULT, metavar="N", help="at most (default: 50)"
    )
    add("show", _show, "Show one delivery with all that happened to it.")
    add("look", _look, "Look now where its receiver keeps it; nothing there is changed.")
    again = add("resend", _resend, "Send its text again as a new message, and withdraw it.")
    again.add_argument("--force", action="store_true", help="though the first may still appear")
    add("drop", _drop, "Give it up: withdraw it.")
    return top


async def _do(database: Path, options: argparse.Namespace) -> str:
    command: Command = options.run
    async with open_for_people(database, durable=True) as channel:
        text, as_json = await command(channel, Inspection(channel.database, channel.clock), options)
    return to_json(as_json) if options.json else text


async def _list(channel: Channel, inspection: Inspection, options: argparse.Namespace) -> Report:
    found = await inspection.find(
        options.limit + 1,
        states=[State(state) for state in options.state],
        room=options.room,
        role=options.role,
        older_than_ms=options.older_than,
    )
    listed, are_more = found[: options.limit], len(found) > options.limit
    as_json = {"deliveries": [each._asdict() for each in listed], "are_more": are_more}
    return list_text(listed, channel.clock.now_ms(), are_more=are_more), as_json


async def _show(channel: Channel, inspection: Inspection, options: argparse.Namespace) -> Report:
    shown = await _named(inspection, options)
    as_json = {**shown._asdict(), "events": [each._asdict() for each in shown.events]}
    return show_text(shown, channel.clock.now_ms()), as_json


async def _look(channel: Channel, inspection: Inspection, options: argparse.Namespace) -> Report:
    from harness_adapters.one_look import look_for

    delivery = await _named(inspection, options)
    look = await look_for(channel, delivery)
    as_json = {"delivery_id": delivery.delivery_id, "before": delivery.state, **_look_as_json(look)}
    kept = "still " if look.state.value == delivery.state else ""
    return f"{look_text(look)}{_of(delivery)} is {kept}{look.state.value}\n", as_json


async def _resend(channel: Channel, inspection: Inspection, options: argparse.Namespace) -> Report:
    from harness_adapters.sending_again import send_again

    delivery = await _named(inspection, options)
    try:
        sent, look = await send_again(channel, delivery, force=options.force)
    except ChannelError as refused:
        raise _MayBeForced(refused) if getattr(refused, "may_be_forced", False) else refused from None
    text = (
        f"{look_text(look) if look else ''}"
        f"sent again to {sent.recipient} as message {sent.message_id}, delivery {sent.delivery_id}\n"
        f"{_of(delivery)} is withdrawn{_may_appear(delivery)}\n"
    )
    as_json = {"delivery_id": delivery.delivery_id, "before": delivery.state, "sent_again": sent._asdict()}
    return text, as_json if look is None else {**as_json, "look": _look_as_json(look)}


async def _drop(channel: Channel, inspection: Inspection, options: argparse.Namespace) -> Report:
    delivery = await _named(inspection, options)
    before = await Decisions(channel.database, channel.clock).drop(delivery.delivery_id)
    as_json = {"delivery_id": delivery.delivery_id, "before": before.value, "state": State.WITHDRAWN.value}
    return f"{_of(delivery)} is withdrawn{_may_appear(delivery)}\n", as_json


async def _named(inspection: Inspection, options: argparse.Namespace) -> Inspected:
    return await inspection.show(await inspection.delivery_id(options.delivery))


def _of(delivery: Inspected) -> str:
    return f"delivery {delivery.delivery_id} of message {delivery.message_id} to {delivery.recipient}"


def _may_appear(delivery: Inspected) -> str:
    """What was handed over can't be called back."""
    return "" if delivery.address is None else "; if it appears all the same, it becomes seen"


def _look_as_json(look: "Look") -> dict[str, Any]:
    return {**look._asdict(), "state": look.state.value}
