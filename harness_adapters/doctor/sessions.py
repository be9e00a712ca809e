"""The sessions that hold a role: whether each hears, and what one that is gone left behind."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from channel.database import Row
from channel.leases import Leases
from channel.membership import Membership, Seat
from channel.presence import PERSON
from harness_adapters.callers import CLAUDE_HARNESS
from harness_adapters.codex.addresses import HARNESS as CODEX_HARNESS
from harness_adapters.codex.addresses import is_loaded
from harness_adapters.codex.app_server import open_app_server, reads_only
from harness_adapters.codex.jsonrpc_peer import PeerError
from harness_adapters.codex.refusals import Refusal
from harness_adapters.codex.threads import thread_of
from harness_adapters.codex.transport import TransportUnavailable
from harness_adapters.doctor.finding import Finding, failed, passed, warned
from waiters import status
from waiters.processes import ProcessIdentity

THREADS_ASKED_MAX = 10
"""Each takes an app-server of its own, 0.1 s."""

RUN_IT_AGAIN = (
    "Write anything into that session that makes it call a tool of agent-channel, or say: join again and run the "
    "command that join returns in Monitor."
)


async def sessions(membership: Membership, leases: Leases, codex_home: Path) -> AsyncIterator[Finding]:
    """A finding for each seat, and what a live Codex says of its thread."""
    seats = await membership.seats()
    if not seats:
        yield passed("no session holds a role now")
    for seat in seats:
        if seat.role.harness == PERSON:
            continue
        stale = _stale_lease(seat, leases)
        if stale is not None:
            yield stale
        if not _is_live(seat):
            yield _gone(seat)
        elif seat.role.harness != CODEX_HARNESS:
            yield _heard(seat)
    codex = [seat for seat in seats if seat.role.harness == CODEX_HARNESS and _is_live(seat)]
    for seat in codex[:THREADS_ASKED_MAX]:
        connection = await membership.connection(seat.role.address)
        if connection is not None:
            yield await _thread(seat, connection)
    for finding in _other_homes(codex, codex_home):
        yield finding


def _heard(seat: Seat) -> Finding:
    """A session that a streamer serves."""
    role = seat.role
    if role.waiter_active:
        if role.detail:
            return warned(
                f"{_of(seat)}: a streamer serves it, and says: {role.detail}",
                "docs/troubleshooting.md says what to do about it.",
            )
        return passed(f"{_of(seat)}: its session lives (process {_pid(seat.process)}), and so does its streamer")
    kind = "Claude Code session" if role.harness == CLAUDE_HARNESS else "session"
    return failed(
        f"{_of(seat)} is deaf: its {kind} lives (process {_pid(seat.process)}), but no Monitor of it runs our streamer "
        f"since {status.at(role.offline_since_ms or 0)}; {role.waiting} waiting",
        RUN_IT_AGAIN,
    )


def _gone(seat: Seat) -> Finding:
    waiting = f", and {seat.role.waiting} waiting" if seat.role.waiting else ""
    hears_again = "it hears again once it is resumed and has called a tool of agent-channel"
    return passed(f"{_of(seat)}: its session has ended{waiting}; {hears_again}")


def _stale_lease(seat: Seat, leases: Leases) -> Finding | None:
    """A lease that nobody gave back and nobody keeps up."""
    if seat.waiter is None or seat.role.waiter_active:
        return None
    since = status.at(seat.role.offline_since_ms or 0)
    if leases.is_alive(seat.waiter):
        return warned(
            f"{_of(seat)}: stale lease: its waiter, process {_pid(seat.waiter)}, lives, but has not renewed it since "
            f"{since}: it was stopped, or the machine slept",
            f"Let it go on (kill -CONT {_pid(seat.waiter)}) or end it: whoever comes next takes the lease.",
        )
    return warned(
        f"{_of(seat)}: stale lease: its waiter, process {_pid(seat.waiter)}, ended without giving it back, "
        f"last renewed {since}",
        "Nothing is lost: whoever serves the role next takes it. Resume the session, or let another one join as "
        f"{seat.role.name}.",
    )


async def _thread(seat: Seat, connection: Row) -> Finding:
    """Whether the app-server that messages would be given to takes some for this thread."""
    try:
        thread = thread_of(connection)
        async with open_app_server(thread.openers(), reads_only) as server:
            waiting = await server.queue.probe(thread.thread_id)
            through = server.in_words
    except (Refusal, TransportUnavailable, PeerError, ValueError) as error:
        return failed(
            f"{_of(seat)}: its thread in {connection['codex_home']} takes no message: {error}",
            "Open that thread again (codex resume), and have it join again.",
        )
    return passed(f"{_of(seat)}: its thread's queue was read ({through}): {waiting} waiting in it")


def _other_homes(seats: Sequence[Seat], codex_home: Path) -> list[Finding]:
    return [
        warned(
            f"{_of(seat)}: its thread is in CODEX_HOME {seat.codex_home}, and here that is {codex_home}",
            f"Nothing, if that is meant; `codex resume` finds it with CODEX_HOME={seat.codex_home}.",
        )
        for seat in seats
        if seat.codex_home is not None and Path(seat.codex_home) != codex_home.resolve()
    ]


def _is_live(seat: Seat) -> bool:
    return seat.role.connected or (seat.role.harness == CODEX_HARNESS and is_loaded(seat.role.address))


def _of(seat: Seat) -> str:
    return f"{seat.role.name} in {seat.room}"


def _pid(process: str) -> int | str:
    try:
        return ProcessIdentity.from_text(process).pid
    except ValueError:
        return process
