"""Which Codex thread a tool call comes from, who runs it, and how its app-server is reached.

The thread's id is in the call's `_meta`; everything else is read off the server's own parent, which is
the process that runs the thread in every mode (terminal program, its shared daemon, exec, app-server:
measured with Codex 0.171.0). Codex passes no CODEX_HOME to an MCP server (facts/codex.md 4.4).
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from channel.database import Row
from channel.membership import Caller
from harness_adapters.codex.app_server import Opener
from harness_adapters.codex.child import open_child
from harness_adapters.codex.daemon import open_daemon
from waiters import processes
from waiters.processes import ProcessIdentity

HARNESS = "codex"
CONTROL_SOCKET = Path("app-server-control", "app-server-control.sock")
_EXEC_COMMANDS = frozenset({"exec", "e"})


class NotServable(Exception):
    """The thread can't be given messages; the text says why and what to do."""


@dataclass(frozen=True)
class Thread:
    """One Codex thread and what is known of the process that runs it, or ran it last."""

    thread_id: str
    home: Path
    owner: ProcessIdentity
    executable: str | None
    version: str | None
    runs_exec: bool

    @property
    def address(self) -> str:
        return address_of(self.thread_id, self.home)

    def is_owned_by_exec(self) -> bool:
        """`codex exec` would take a row at its exit without asking its model."""
        return self.runs_exec and processes.is_alive(self.owner) is not False

    def openers(self) -> list[Opener]:
        """How to reach an app-server of its CODEX_HOME, the best way first.

        Over the daemon's socket an idle thread starts within 0.1 s. It is used where the daemon runs the
        thread, or nobody does; a live owner of another kind may have another version, and then the child is
        started from its own binary.
        """
        daemon = Opener("daemon", lambda: open_daemon(self.home / CONTROL_SOCKET))
        children = [_child(codex, self.home) for codex in self._binaries()]
        if processes.is_alive(self.owner) and not _is_daemon(processes.command_line(self.owner.pid) or []):
            return children
        return [daemon, *children] if (self.home / CONTROL_SOCKET).exists() else children

    def _binaries(self) -> list[Path]:
        found = []
        if processes.is_alive(self.owner) and (running := processes.executable(self.owner.pid)):
            found.append(Path(running))
        if self.executable and Path(self.executable).exists():
            found.append(Path(self.executable))
        if not found and (on_path := shutil.which("codex")):
            found.append(Path(on_path))
        return found[:1]


def address_of(thread_id: str, home: Path) -> str:
    return f"codex:{thread_id}@{home}"


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
    return Caller(
        address=address_of(thread_id, _home_of(owner.pid)),
        harness=HARNESS,
        process=owner.to_text(),
        server=server.to_text(),
        thread_id=thread_id,
        codex_home=str(_home_of(owner.pid)),
        codex_path=processes.executable_path(owner.pid),
        codex_version=client_version or None,
        runs_exec=_is_exec(turn, processes.command_line(owner.pid) or []),
    )


def thread_of(connection: Row) -> Thread:
    """The thread that a stored connection is."""
    return Thread(
        thread_id=connection["thread_id"],
        home=Path(connection["codex_home"]),
        owner=ProcessIdentity.from_text(connection["process"]),
        executable=connection["codex_path"],
        version=connection["codex_version"],
        runs_exec=bool(connection["runs_exec"]),
    )


def _home_of(pid: int) -> Path:
    environment = processes.environment(pid) or {}
    if environment.get("CODEX_HOME"):
        return Path(environment["CODEX_HOME"]).resolve()
    home = environment.get("HOME")
    return (Path(home) if home else Path.home()).joinpath(".codex").resolve()


def _is_exec(turn: Mapping[str, Any], command_line: Sequence[str]) -> bool:
    """From the call itself, else from the owner's command line; a version may lack the first."""
    if "turn_trigger" in turn:
        return bool(turn["turn_trigger"] == "exec")
    first_word = next((word for word in command_line[1:] if not word.startswith("-")), "")
    return first_word in _EXEC_COMMANDS


def _is_daemon(command_line: Sequence[str]) -> bool:
    return "app-server" in command_line and "--listen" in command_line


def _child(codex: Path, home: Path) -> Opener:
    return Opener("child", lambda: open_child(codex, home))
