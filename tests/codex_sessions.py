"""Codex threads that the product serves in the test's own process: waiter, receiver and app-server client.

What stands in for Codex is a CODEX_HOME and a `codex` to start, real or fake. Where a thread is loaded, if it
is, is up to the test.
"""

import os
from pathlib import Path

from channel.clock import SystemClock
from channel.database import Row
from channel.membership import Caller
from harness_adapters.codex.addresses import HARNESS, address_of
from tests.another_session import AnotherSession, ChannelView
from waiters import processes
from waiters.processes import ProcessIdentity

SENDER = "tester"

_EVENTS = """
SELECT e.event FROM delivery_events e JOIN deliveries d USING (delivery_id) WHERE d.message_id = ?
ORDER BY e.event_id
"""


class HurriedClock(SystemClock):
    """The system's clock, so many times as fast: what takes minutes by the rules takes seconds.

    For the waits of the product; another process lives by the true time.
    """

    def __init__(self, times: float) -> None:
        self._times = times
        self._began_ms = super().now_ms()
        self._began_s = super().monotonic()

    def now_ms(self) -> int:
        return self._began_ms + int((super().now_ms() - self._began_ms) * self._times)

    def monotonic(self) -> float:
        return self._began_s + (super().monotonic() - self._began_s) * self._times

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self._times)


def thread_session(
    view: ChannelView,
    thread_id: str,
    codex_home: Path,
    codex: Path,
    *,
    owner_pid: int | None = None,
    version: str | None = None,
) -> AnotherSession:
    """The session that a Codex thread is.

    `owner_pid`: the process that has it loaded; None: it has ended. `version`: what that one says of itself.
    """
    server = view.channel.process.to_text()
    return view.session_of(thread_caller(server, thread_id, codex_home, codex, owner_pid=owner_pid, version=version))


def thread_caller(
    server: str,
    thread_id: str,
    codex_home: Path,
    codex: Path,
    *,
    owner_pid: int | None = None,
    version: str | None = None,
) -> Caller:
    """Who such a session is to the tools; `server`: the identity of the process that serves it."""
    owner = processes.identity_of(owner_pid) if owner_pid is not None else None
    return Caller(
        address_of(thread_id, codex_home),
        HARNESS,
        (owner or _ended_process()).to_text(),
        server,
        thread_id=thread_id,
        codex_home=str(codex_home),
        codex_path=str(codex),
        codex_version=version,
    )


async def delivery_of(view: ChannelView, message_id: int) -> Row:
    """The stored row of a message's only delivery."""
    [row] = await view.channel.database.read("SELECT * FROM deliveries WHERE message_id = ?", (message_id,))
    return row


async def events_of(view: ChannelView, message_id: int) -> list[str]:
    """All that happened to a message's only delivery, in order."""
    return [row["event"] for row in await view.channel.database.read(_EVENTS, (message_id,))]


def _ended_process() -> ProcessIdentity:
    """This process's pid, at another time: whoever had it then is gone."""
    own = processes.own_identity()
    return ProcessIdentity(own.boot_id, own.pid_namespace, os.getpid(), own.start - 1)
