"""A person's look for one delivery, where its receiver keeps it. It reads only, and needs no lease.

What it finds is recorded, as any evidence. What it does not find decides nothing under `monitor`: whether a
message is printed again is for the next streamer to say, which knows that it prints.
"""

import os
from pathlib import Path
from typing import NamedTuple

from channel.delivery_states import Event, Policy, State
from channel.errors import ChannelError
from channel.inspection import Inspected
from channel.messages import OpenDelivery, Outcome
from harness_adapters.claude import session as claude_session
from harness_adapters.claude.addresses import process_of
from harness_adapters.claude.evidence import Shown, transcripts
from harness_adapters.codex.app_server import open_app_server, reads_only
from harness_adapters.codex.evidence import gather
from harness_adapters.codex.jsonrpc_peer import PeerError
from harness_adapters.codex.refusals import Refusal
from harness_adapters.codex.threads import thread_of
from harness_adapters.codex.transport import TransportUnavailable
from harness_adapters.composition import Channel


class CantLook(ChannelError):
    """There is nothing to look for, or no way to look; nothing was recorded. Its text may be sent again unlooked."""

    may_be_forced = True

    def __init__(self, delivery: Inspected, why: str) -> None:
        super().__init__(f"Delivery {delivery.delivery_id} can't be looked for: {why}")


class Look(NamedTuple):
    """What was looked at, a line each, what was found, and the state after it was recorded.

    `is_conclusive`: the delivery is there, or it is not; else something could not be read.
    """

    looked_at: tuple[str, ...]
    found: str
    is_conclusive: bool
    state: State


_Found = tuple[tuple[str, ...], Outcome | None, str]
"""What was looked at, what is to be recorded, and the words for it."""


async def look_for(channel: Channel, delivery: Inspected) -> Look:
    """Look once, and record what it says. Raises CantLook."""
    if delivery.address is None or delivery.text_sha256 is None or delivery.handed_over_at_ms is None:
        raise CantLook(delivery, "it was handed over to nobody yet.")
    handed_over = OpenDelivery(
        delivery_id=delivery.delivery_id,
        message_id=delivery.message_id,
        state=State(delivery.state),
        text_sha256=delivery.text_sha256,
        place=delivery.place or "",
        handed_over_at_ms=delivery.handed_over_at_ms,
        of_former_term=False,
        elsewhere=False,
        role_is_replaced=False,
        next_look_at_ms=delivery.next_look_at_ms,
    )
    if delivery.policy == Policy.QUEUE.value:
        looked_at, outcome, found = await _in_thread(channel, delivery, handed_over)
    else:
        looked_at, outcome, found = _in_transcripts(delivery, handed_over)
    if outcome is None:
        return Look(looked_at, found, is_conclusive=False, state=handed_over.state)
    recorded = await channel.deliveries.record([outcome])
    if not recorded:
        raise CantLook(delivery, "it was trimmed meanwhile.")
    return Look(looked_at, found, is_conclusive=True, state=recorded[0].state)


_FOUND = {
    Event.KEY_IN_ITEMS: "its key is among the items, with its text",
    Event.KEY_IN_QUEUE: "its key is in the queue, with its text: it has not run yet",
    Event.KEY_WITH_OTHER_TEXT: "its key is held by another text",
    Event.KEY_IN_NEITHER: "its key is in neither place",
}


async def _in_thread(channel: Channel, delivery: Inspected, handed_over: OpenDelivery) -> _Found:
    assert delivery.address is not None and delivery.key is not None
    connection = await channel.membership.connection(delivery.address)
    if connection is None:
        raise CantLook(delivery, "nothing is recorded of its thread.")
    try:
        thread = thread_of(connection)
        async with open_app_server(thread.openers(), reads_only) as server:
            evidence = await gather(server.queue, thread.thread_id, handed_over.handed_over_at_ms)
            through = server.in_words
    except (TransportUnavailable, Refusal, PeerError, ValueError) as error:
        raise CantLook(delivery, str(error)) from error
    messages = len(evidence.history.user_messages)
    looked_at = (
        f"thread {thread.thread_id} in {thread.home} (through {through})",
        f"its queue: {evidence.rows} waiting" if evidence.queue_was_read else "its queue can't be read: it is archived",
        f"its user messages: {messages}" + ("" if evidence.history.complete else ", and there are more"),
    )
    outcome = evidence.of(handed_over, delivery.key)
    if outcome is None:
        return looked_at, None, "its key was not found, and not all could be read"
    return looked_at, outcome, _FOUND[outcome.event]


def _in_transcripts(delivery: Inspected, handed_over: OpenDelivery) -> _Found:
    assert delivery.address is not None
    present = _present_transcript(delivery.address)
    places = transcripts(handed_over, present)
    if not places:
        raise CantLook(delivery, "its session has no transcript.")
    shown = Shown([handed_over], present)
    looked_at = tuple(f"transcript {path} from byte {offset}" for path, offset in places)
    whole = shown.find(handed_over)
    if whole is not None:
        remark = "shortened" if whole.shortened else ""
        return looked_at, Outcome(handed_over.delivery_id, Event.IN_TRANSCRIPT, remark), "it stands there whole"
    if not shown.could_be_read(handed_over):
        return looked_at, None, "nothing: there is no such file to read"
    return looked_at, None, "it does not stand there whole"


def _present_transcript(address: str) -> Path | None:
    """The one that the session writes now: /clear begins another."""
    process = process_of(address)
    return None if process is None else claude_session.transcript_of(process, claude_session.config_folder(os.environ))
