"""The person who runs a command, as a participant: one of the account."""

import os
from collections.abc import Sequence
from pathlib import Path

import anyio

from channel.conversation import Said
from channel.delivery_states import State
from channel.membership import Caller
from channel.people import People, person
from harness_adapters.commands.running import open_for_people
from harness_adapters.composition import Channel

_NOT_SHOWN = (State.PENDING.value, State.HANDED_OVER.value)


def own_person(channel: Channel) -> Caller:
    return person(os.getuid(), channel.process.to_text())


def people_of(channel: Channel) -> People:
    return People(channel.database, channel.membership, channel.sending, channel.deliveries, channel.leases)


async def note_shown(database: Path, messages: Sequence[Said]) -> None:
    """A terminal has shown them: of those to this person, that is recorded."""
    if has_unshown(messages):
        async with open_for_people(database, durable=False) as channel:
            await note_shown_in(channel, messages)


async def note_shown_in(channel: Channel, messages: Sequence[Said]) -> None:
    if has_unshown(messages):
        with anyio.CancelScope(shield=True):
            await people_of(channel).was_shown(own_person(channel), {said.message_id for said in messages})


def has_unshown(messages: Sequence[Said]) -> bool:
    """Whether any may wait for this person; the file is not written for others'."""
    return any(delivery.state in _NOT_SHOWN for said in messages for delivery in said.deliveries)
