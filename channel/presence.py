"""Who is there: read off leases and off processes, never off what somebody wrote before dying.

`Liveness` judges a process identity: True, False, or None where it can't be judged (a process in
another PID namespace), and then the lease alone decides.
"""

from collections.abc import Callable
from typing import NamedTuple

from channel.clock import Clock
from channel.database import Row

Liveness = Callable[[str], "bool | None"]

LEASE_TTL_S = 60
"""How long a waiter is believed without a renewal."""

PERSON = "person"
"""The harness of a connection that is a person's: no process of theirs lasts, and nothing wakes them."""

ABSENT_MS_BEFORE_SKIPPED = 7 * 24 * 3_600_000
"""A role that nobody has served for longer gets no message to all."""


class RoleView(NamedTuple):
    """One held role, as others see it.

    `offline_since_ms`: None while its waiter is active. `connected`: its session lives. `bell`: the FIFO of
    an active waiter, else "". `long_absent`: neither session nor waiter for over 7 days. `waiting`: messages that
    are not handed over yet, counted to a thousand.
    """

    role_id: int
    name: str
    address: str
    harness: str
    connected: bool
    waiter_active: bool
    offline_since_ms: int | None
    detail: str
    bell: str
    long_absent: bool
    waiting: int


class Presence:
    """Judges the rows of `room_roles` and `waiter` at this moment."""

    def __init__(self, clock: Clock, boot_id: str, is_alive: Liveness) -> None:
        self._clock = clock
        self._boot_id = boot_id
        self._is_alive = is_alive

    def lease_until_ms(self) -> int:
        """The end of a lease that is taken or renewed now, on this boot's monotonic clock."""
        return self._monotonic_ms() + LEASE_TTL_S * 1_000

    @property
    def boot_id(self) -> str:
        return self._boot_id

    def is_alive(self, process: str) -> bool | None:
        return self._is_alive(process)

    def lease_is_held(self, row: Row, process: str) -> bool:
        """Whether a row's lease is in force and `process`, its holder, may live.

        A lease that ends later than one taken now could end was not written by this clock: not believed.
        """
        if row["released_at_ms"] is not None or row["boot_id"] != self._boot_id:
            return False
        if not self._monotonic_ms() < row["lease_until_ms"] <= self.lease_until_ms():
            return False
        return self._is_alive(process) is not False

    def view(self, row: Row) -> RoleView:
        """One row of `room_roles`."""
        active = row["waiter_process"] is not None and self.lease_is_held(row, row["waiter_process"])
        # A Codex thread is loaded as long as its own server process lives; the process above it may be the
        # shared daemon, which lives on.
        connected = self._is_alive(row["server"] if row["harness"] == "codex" else row["process"]) is not False
        since = None
        if not active:
            since = row["released_at_ms"] or row["renewed_at_ms"] or row["joined_at_ms"]
        quiet_ms = self._clock.now_ms() - max(since or 0, row["seen_at_ms"])
        return RoleView(
            role_id=row["role_id"],
            name=row["name"],
            address=row["address"],
            harness=row["harness"],
            connected=connected,
            waiter_active=active,
            offline_since_ms=since,
            detail=row["detail"] or "",
            bell=(row["bell"] or "") if active else "",
            long_absent=not active and not connected and quiet_ms > ABSENT_MS_BEFORE_SKIPPED,
            waiting=row["waiting"],
        )

    def _monotonic_ms(self) -> int:
        return int(self._clock.monotonic() * 1_000)
