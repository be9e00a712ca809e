"""Which Codex thread a tool call comes from, who runs it, and how its app-server is reached.

The thread's id is in the call's `_meta`; everything else is read off the server's own parent, which is
the process that runs the thread in every mode (terminal program, its shared daemon, exec, app-server:
measured with Codex 0.171.0). Codex passes no CODEX_HOME to an MCP server.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from channel.database import Row
from channel.membership import Caller
from harness_adapters.codex.addresses import HARNESS, address_of
from harness_adapters.codex.app_server import Opener
from harness_adapters.codex.child import SQLITE_HOME, open_child
from harness_adapters.codex.daemon import open_daemon
from harness_adapters.codex.owners import Owner, owner_from, writer_of
from waiters import processes
from waiters.processes import ProcessIdentity

CONTROL_SOCKET = Path("app-server-control", "app-server-control.sock")


class NotServable(Exception):
    """The thread can't be given messages; the text says why and what to do."""


@dataclass(frozen=True)
class Thread:
    """One Codex thread, and what its last tool call told of the process that ran it then (`caller`)."""

    thread_id: str
    home: Path
    sqlite_home: Path | None
    caller: ProcessIdentity
    executable: str | None
    version: str | None
    runs_exec: bool

    @property
    def address(self) -> str:
        return address_of(self.thread_id, self.home)

    def owner(self) -> Owner | None:
        """The process that has the thread loaded now, or may have: the last one known, as long as it lives."""
        writer = writer_of(self.home, self.thread_id)
        if writer is None and processes.is_alive(self.caller):
            writer = self.caller.pid
        return None if writer is None else owner_from(writer)

    def is_owned_by_exec(self) -> bool:
        """`codex exec` would take a row at its exit without asking its model."""
        owner = self.owner()
        if owner is None:
            # In another PID namespace it can't be seen whether it lives.
            return self.runs_exec and processes.is_alive(self.caller) is None
        return owner.runs_once or (self.runs_exec and owner.pid == self.caller.pid)

    def version_of_owner(self) -> str | None:
        """The version of the process that has the thread loaded; None where that is not known."""
        owner = self.owner()
        return self.version if owner is not None and owner.pid == self.caller.pid else None

    def openers(self) -> list[Opener]:
        """How to reach an app-server of its CODEX_HOME, the best way first.

        Over the daemon's socket an idle thread starts within 0.1 s. It is used where the daemon runs the
        thread, or nobody does; a live owner of another kind may have another version, and then the child is
        started from its own binary.
        """
        owner = self.owner()
        child = _child(self._binary(owner), self.home, self.sqlite_home)
        socket = self.home / CONTROL_SOCKET
        if not socket.exists() or (owner is not None and not owner.is_daemon):
            return [child]
        return [Opener("daemon", lambda: open_daemon(socket)), child]

    def _binary(self, owner: Owner | None) -> Path:
        """The owner's own, else the one seen at the last tool call, else that on PATH; it may be gone."""
        running = owner.executable() if owner is not None else None
        if running is not None:
            return Path(running)
        recorded = self.executable
        if recorded is not None and Path(recorded).exists():
            return Path(recorded)
        return Path(shutil.which("codex") or recorded or "codex")


def caller_of(meta: Mapping[str, Any], client_version: str, server: ProcessIdentity) -> Caller:
    """The session behind a tool call of Codex. Raises NotServable: a sub-agent's thread, or no thread id."""
    thread_id = meta.get("threadId")
    if not isinstance(thread_id, str) or not thread_id:
        raise NotServable(
            "This Codex does not say which thread a tool call comes from (_meta.threadId is missing), so nothing "
            "can be delivered to it. Update Codex."
        )
    turn = meta.get("x-codex-turn-metadata")
    turn = turn if isinstance(turn, Mapping) else {}
    root = turn.get("session_id") or meta.get("sessionId") or thread_id
    if turn.get("thread_source") == "subagent" or root != thread_id:
        raise NotServable(
            "This is a sub-agent's thread, which Codex lets nobody deliver to. Let the main thread join, and pass "
            "messages on to its sub-agents."
        )
    owner_pid = processes.nearest_program_above(server.pid)
    owner = processes.identity_of(owner_pid) if owner_pid else None
    owner = owner or server
    environment = processes.environment(owner.pid) or {}
    home = _home_in(environment)
    program = owner_from(owner.pid)
    return Caller(
        address=address_of(thread_id, home),
        harness=HARNESS,
        process=owner.to_text(),
        server=server.to_text(),
        thread_id=thread_id,
        codex_home=str(home),
        codex_sqlite_home=environment.get(SQLITE_HOME),
        codex_path=processes.executable_path(owner.pid) if program.executable() is not None else None,
        codex_version=client_version or None,
        runs_exec=turn.get("turn_trigger") == "exec" or program.runs_once,
    )


def thread_of(connection: Row) -> Thread:
    """The thread that a stored connection is."""
    return Thread(
        thread_id=connection["thread_id"],
        home=Path(connection["codex_home"]),
        sqlite_home=Path(connection["codex_sqlite_home"]) if connection["codex_sqlite_home"] else None,
        caller=ProcessIdentity.from_text(connection["process"]),
        executable=connection["codex_path"],
        version=connection["codex_version"],
        runs_exec=bool(connection["runs_exec"]),
    )


def _home_in(environment: Mapping[str, str]) -> Path:
    if environment.get("CODEX_HOME"):
        return Path(environment["CODEX_HOME"]).resolve()
    home = environment.get("HOME")
    return (Path(home) if home else Path.home()).joinpath(".codex").resolve()


def _child(codex: Path, home: Path, sqlite_home: Path | None) -> Opener:
    return Opener("child", lambda: open_child(codex, home, sqlite_home=sqlite_home))
