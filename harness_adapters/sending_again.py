"""A person has a stuck text sent again: by the rules of `channel/decisions.py`, an uncertain one after a look."""

from contextlib import suppress

from channel.decisions import Decisions, SentAgain
from channel.delivery_states import State
from channel.errors import StoreUnavailable
from channel.inspection import Inspected
from channel.wakeups import ring
from harness_adapters.composition import Channel
from harness_adapters.one_look import CantLook, Look, look_for


async def send_again(channel: Channel, delivery: Inspected, *, force: bool) -> tuple[SentAgain, Look | None]:
    """Send the text as a new message, withdraw this delivery and wake the recipient's waiter.

    The look, if one was needed: forced, an uncertain delivery is not looked for.
    Raises CantLook (force goes past it), UnknownDelivery, DecisionRefused.
    """
    look = None
    if delivery.state == State.UNCERTAIN.value and not force:
        look = await look_for(channel, delivery)
        if not look.is_conclusive:
            raise CantLook(delivery, f"{look.found}.")
    sent = await Decisions(channel.database, channel.clock).send_again(delivery.delivery_id, force=force)
    with suppress(StoreUnavailable):  # it is sent: an error would deny it, and its waiter looks for itself
        ring([await channel.leases.bell(sent.address)])
    return sent, look
