"""Which open deliveries are looked for now. Looking only reads; nothing here ever hands over."""

from collections.abc import Collection, Sequence

from channel.delivery_states import State
from channel.look_schedule import LOOK_S_MAX
from channel.messages import OpenDelivery

LOOKED_FOR_AT_ONCE = 100
"""A thread's queue holds 100 rows; the oldest are looked for first."""


def is_due(next_look_at_ms: int | None, now_ms: int) -> bool:
    """Whether a look-up's time has come.

    The time is a wall-clock one, since any process may be the one that looks. Where the clock was set
    back, the time lies further ahead than any interval, and the look-up is due: it only reads.
    """
    if next_look_at_ms is None:
        return False
    return next_look_at_ms <= now_ms or next_look_at_ms > now_ms + LOOK_S_MAX * 1_000


def to_look_for(open_deliveries: Sequence[OpenDelivery], now_ms: int, at_once: Collection[int]) -> list[OpenDelivery]:
    """The deliveries whose time has come; also those of the ids `at_once`, whenever their time is.

    Those that stand in the middle of a hand-over come first: no later look is planned for them. Those among them
    that were given elsewhere are wanted at any time, since the role may have come to this address only now.
    """
    wanted = [
        delivery
        for delivery in open_deliveries
        if is_due(delivery.next_look_at_ms, now_ms)
        or delivery.delivery_id in at_once
        or (delivery.elsewhere and delivery.state is State.HANDED_OVER)
    ]
    wanted.sort(key=lambda delivery: delivery.state is not State.HANDED_OVER)
    return wanted[:LOOKED_FOR_AT_ONCE]
