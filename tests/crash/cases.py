"""The lives that a case walks through: messages wait, processes die at their places, others go on, all comes to rest.

A case is a receiver and the faults of successive processes. Each life returns which of its faults came.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from channel.database import Row
from channel.delivery_states import State
from fakes.codex_app_server import CONTROL_SOCKET
from fakes.faults import parse_faults, set_faults
from tests.another_session import LOOK_S, ROOM
from tests.crash.world import CLAUDE_ROLE, CODEX_ROLE, ServerProcess, Streamer, World

LONG = "\n".join(f"line {number}: {'<x>' * 30}" for number in range(40))
"""Two flushes of a Monitor."""

NEWCOMER = "newcomer"

RENEWAL = "renew_leases"

_SINGLE_STATEMENTS = ("hand_over", RENEWAL)

_WAITING = {State.PENDING.value, State.HANDED_OVER.value}


@dataclass(frozen=True)
class Case:
    """`faults`: of successive processes of the product; those of an app-server stand in `server_faults`."""

    receiver: str
    faults: tuple[str, ...] = ()
    server_faults: str = ""

    @property
    def place(self) -> str:
        """What the table calls it: where the first death comes, which passing of it left out."""
        if self.server_faults:
            return f"the app-server, {self.server_faults.partition('#')[0].replace(':', ' ')}"
        if len(self.faults) > 1:
            return "pairs"
        where, _, rest = self.faults[0].partition("#")
        return where.rstrip(":").replace(":", " ") + (", stopped and taken over" if "stop" in rest else "")

    def __str__(self) -> str:
        return f"{self.receiver} {' then '.join(self.faults)}{self.server_faults}"


Life = Callable[[World, Case], Awaitable[list[bool]]]


async def live(world: World, case: Case) -> list[bool]:
    """Which of the faults came; all that was sent is at rest."""
    return await LIVES[case.receiver](world, case)


async def _until_renewed(victim: ServerProcess | Streamer, fault: str) -> None:
    """A waiter with nothing to do still renews its lease, and may die of that."""
    while RENEWAL in fault and not victim.trace.was_hit:  # noqa: ASYNC110 - the victim tells nobody
        await anyio.sleep(LOOK_S)


def _stops(victim: ServerProcess | Streamer, fault: str) -> bool:
    """Whether it has come to where it is stopped, not killed."""
    return ":stop" in fault and victim.trace.was_hit


async def _is_stopped_by(victim: ServerProcess | Streamer, fault: str) -> bool:
    """Whether the fault stopped it; one that has just come takes a moment to."""
    if not _stops(victim, fault):
        return False
    while not victim.trace.is_stopped:  # noqa: ASYNC110 - the kernel tells nobody
        await anyio.sleep(LOOK_S)
    return True


# --- Claude Code ---


async def _monitor(world: World, case: Case) -> list[bool]:
    await world.send("first", CLAUDE_ROLE)
    await world.send(LONG, CLAUDE_ROLE)
    came = []
    for fault in case.faults:
        came.append(await streamer_dies(world, fault))
        await world.send(f"after {fault}", CLAUDE_ROLE)
    await last_streamer(world)
    return came


async def streamer_dies(world: World, fault: str) -> bool:
    async with world.streamer(fault) as victim:
        await world.until(_all_seen_by_claude, over=lambda: victim.ended or _stops(victim, fault))
        await _until_renewed(victim, fault)
        if await _is_stopped_by(victim, fault):
            await _streamer_taken_over(world, victim, fault)
        elif not victim.ended:
            await victim.end()
        return victim.trace.was_hit


async def _streamer_taken_over(world: World, former: Streamer, fault: str) -> None:
    """Another serves the session while the former one is stopped; then it goes on, and must find that out."""
    pid = former.trace.pid
    assert pid is not None
    if not _holds_the_file(fault):
        before = await world.view.waiter(world.claude.address)
        await _let_leases_run_out(world)
        async with world.streamer():
            await world.view.until_waiter(
                world.claude.address, lambda now: before is None or now["term"] > before["term"]
            )
            await world.until(_all_seen_by_claude)
            os.kill(pid, signal.SIGCONT)
            await former.host.wait_ended()
    else:
        os.kill(pid, signal.SIGCONT)
        await world.until(_all_seen_by_claude, over=lambda: former.ended)


async def last_streamer(world: World) -> None:
    async with world.streamer() as last:
        await world.until(_all_seen_by_claude)
        await last.end()


# --- Codex ---


async def _queue(world: World, case: Case) -> list[bool]:
    """A closed thread, served by whatever server of the account lives, through children of its own."""
    await world.send("first", CODEX_ROLE)
    await world.send(LONG, CODEX_ROLE)
    set_faults(world.home, case.server_faults)
    came = []
    for number, fault in enumerate(case.faults):
        came.append(await server_dies(world, fault))
        await world.send(f"after {fault}", CODEX_ROLE)
        if number % 2:
            world.run_rows()
    await last_server(world)
    return [*came, *_server_faults_came(world, case)]


async def _queue_over_daemon(world: World, case: Case) -> list[bool]:
    """The same over the control socket; where the daemon dies, a child has to do."""
    async with daemon(world):
        return await _queue(world, case)


async def _queue_without_daemon(world: World, case: Case) -> list[bool]:
    """The socket is there and nobody listens: each session falls back to a child."""
    async with daemon(world):
        pass
    return await _queue(world, case)


async def _own_server(world: World, case: Case) -> list[bool]:
    """The thread's own server dies at its work, after it joined as the thread; any other goes on with it."""
    await world.send("first", CODEX_ROLE)
    came = []
    for fault in case.faults:
        async with world.own_server(fault) as victim:
            await victim.handshake()
            if await victim.call("join", room=ROOM, name=CODEX_ROLE) is not None:
                await world.send(LONG, CODEX_ROLE)
            await serve_thread(world, over=lambda: not victim.lives)
            await _until_renewed(victim, fault)
            await victim.end()
            came.append(victim.trace.was_hit)
    await last_server(world)
    return came


async def server_dies(world: World, fault: str) -> bool:
    async with world.server(fault) as victim:
        await serve_thread(world, over=lambda: not victim.lives or _stops(victim, fault))
        if await _is_stopped_by(victim, fault):
            await _server_taken_over(world, victim, fault)
        elif victim.lives:
            await victim.end()
        return victim.trace.was_hit


async def _server_taken_over(world: World, former: ServerProcess, fault: str) -> None:
    if _holds_the_file(fault):
        os.kill(former.identity.pid, signal.SIGCONT)
        await serve_thread(world)
        return
    await _let_leases_run_out(world)
    async with world.server():
        await world.until(_none_waits)
        os.kill(former.identity.pid, signal.SIGCONT)
        await serve_thread(world)


async def last_server(world: World) -> None:
    """It has work in any case, and so cleans up what the dead left behind."""
    await world.send("last", CODEX_ROLE)
    async with world.server() as last:
        await serve_thread(world)
        await last.end()


async def serve_thread(world: World, over: Callable[[], bool] = lambda: False) -> None:
    """Until all is given; the thread then runs what it has, until all is found there or is surely not."""
    if not await world.until(_none_waits, over):
        return
    while not over():
        world.run_rows()  # a line of a stopped process may come late
        if _thread_is_settled(world, await world.rows()):
            return
        await anyio.sleep(LOOK_S)


@asynccontextmanager
async def daemon(world: World) -> AsyncIterator[int]:
    """The shared app-server of the thread's CODEX_HOME; its pid."""
    command = [sys.executable, "-I", "-m", "fakes.codex_app_server", "app-server", "--home", str(world.home.path)]
    async with await anyio.open_process(
        [*command, "--listen", "unix://"], stdin=None, stdout=None, stderr=None
    ) as process:
        link = world.home.path / CONTROL_SOCKET
        while not link.exists():  # noqa: ASYNC110 - a process makes it
            await anyio.sleep(LOOK_S)
        try:
            yield process.pid
        finally:
            if process.returncode is None:
                process.kill()


def _server_faults_came(world: World, case: Case) -> list[bool]:
    passed = world.home.passages()
    return [passed.get(f"{each.place}:{each.method}", 0) >= each.nth for each in parse_faults(case.server_faults)]


# --- the sender ---


async def _sender(world: World, case: Case) -> list[bool]:
    """The process that joins and sends dies; whoever is left delivers what it stored, to both receivers."""
    came = []
    for number, fault in enumerate(case.faults):
        async with world.server(fault) as victim:
            await victim.handshake()
            await victim.call("join", room=ROOM, name=f"{NEWCOMER}-{number}")
            for text in (f"one {number}", LONG):
                to = [CLAUDE_ROLE, CODEX_ROLE]
                answer = await victim.call("send", text=text, to=to)
                if answer is not None:
                    world.owe(answer["id"], text, to)
            await victim.call("rename", name=f"{NEWCOMER}-{number}-renamed")
            await victim.call("leave")
            came.append(victim.trace.was_hit)
    await _both_settle(world)
    return came


async def _both_settle(world: World) -> None:
    async with world.streamer() as streamer, world.server() as server:
        await serve_thread(world)
        await world.until(_all_seen_by_claude)
        await streamer.end()
        await server.end()


# --- a role moves ---


async def _moves_to_codex(world: World, case: Case) -> list[bool]:
    """The Claude session's streamer dies, and the thread takes the role; what waits follows it."""
    membership = world.view.channel.membership
    await membership.leave(world.thread_caller.address, None)
    await world.send("first", CLAUDE_ROLE)
    await world.send(LONG, CLAUDE_ROLE)
    came = [await streamer_dies(world, fault) for fault in case.faults]
    await membership.join(world.thread_caller, ROOM, CLAUDE_ROLE, None)
    await world.send("last", CLAUDE_ROLE)
    await _both_settle(world)
    return came


async def _moves_to_claude(world: World, case: Case) -> list[bool]:
    """The server that serves the thread dies, and the Claude session takes the role."""
    await world.claude.leave()
    await world.send("first", CODEX_ROLE)
    await world.send(LONG, CODEX_ROLE)
    came = [await server_dies(world, fault) for fault in case.faults]
    await world.claude.join(CODEX_ROLE)
    await world.send("last", CODEX_ROLE)
    await _both_settle(world)
    return came


def _holds_the_file(fault: str) -> bool:
    """A process stopped here keeps all others from writing, so nobody can take anything over from it."""
    return fault.startswith("uncommitted") and not any(name in fault for name in _SINGLE_STATEMENTS)


async def _let_leases_run_out(world: World) -> None:
    async with world.view.channel.database.transaction() as transaction:
        await transaction.run("UPDATE waiters SET lease_until_ms = 0")


def _all_seen_by_claude(rows: Sequence[Row]) -> bool:
    """Of what is, or is to be, a Claude session's."""
    return all(
        row["state"] in (State.SEEN.value, State.WITHDRAWN.value)
        for row in rows
        if row["policy"] == "monitor" or (row["policy"] is None and row["harness"] == "claude")
    )


def _none_waits(rows: Sequence[Row]) -> bool:
    return not any(row["state"] in _WAITING for row in rows if row["harness"] == "codex")


def _thread_is_settled(world: World, rows: Sequence[Row]) -> bool:
    """All seen, or looked for in vain where it is not."""
    there = {int(key.rpartition(":")[2]) for key in world.item_keys()}
    return all(
        row["state"] in (State.SEEN.value, State.WITHDRAWN.value)
        or (row["state"] == State.UNCERTAIN.value and row["absent_since_ms"] and row["message_id"] not in there)
        for row in rows
        if row["policy"] == "queue"
    )


LIVES: dict[str, Life] = {
    "monitor": _monitor,
    "queue": _queue,
    "queue, own server": _own_server,
    "queue, daemon": _queue_over_daemon,
    "queue, dead daemon": _queue_without_daemon,
    "sender": _sender,
    "Claude to Codex": _moves_to_codex,
    "Codex to Claude": _moves_to_claude,
}
