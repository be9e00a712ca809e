"""Which Claude Code session a process of ours belongs to, and where that session's transcript is.

Claude Code keeps a note on each of its processes: `sessions/<pid>.json` in its configuration folder
(`pid`, `sessionId`, `cwd`, `procStart`; seen in 14 versions up to 2.1.332, there within 0.5 s of its
start). The server and the streamer look for the nearest process above them that has one, so a Claude
Code inside another one's shell gets its own roles. The variables that name a session are inherited
by such a nested one and go stale after /clear: they decide nothing where there is a note.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from waiters.processes import (
    ProcessIdentity,
    ancestors,
    identity_of,
    is_launcher,
    name_of,
    nearest_program_above,
)

_SESSION_ID = re.compile(r"[\w-]+", re.ASCII)
"""A UUID so far; in any case a plain part of a file's name."""

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9]")


class ClaudeSession(NamedTuple):
    """The process that a session runs in; what its note says is None where it has none.

    `session_id` changes in one process with /clear: look again before using it.
    """

    process: ProcessIdentity
    session_id: str | None
    working_folder: str | None


def config_folder(environment: Mapping[str, str]) -> Path:
    """Claude Code's configuration folder, as Claude Code itself chooses it."""
    chosen = environment.get("CLAUDE_CONFIG_DIR")
    return Path(chosen) if chosen else Path(environment.get("HOME") or Path.home(), ".claude")


def session_of_server(pid: int, config: Path) -> ClaudeSession | None:
    """The session that the MCP server with `pid` belongs to.

    Where no process above it has a note, the nearest that is no launcher; None where there is none.
    """
    return _noted_session(pid, config) or _session_without_note(nearest_program_above(pid))


def session_of_streamer(pid: int, config: Path, environment: Mapping[str, str]) -> ClaudeSession | None:
    """The session that the streamer with `pid` belongs to: as for the server, but for one more witness.

    Claude Code tells its shell children its pid (CLAUDE_PID); that is believed if it is above them.
    """
    told = environment.get("CLAUDE_PID", "")
    told_pid = int(told) if told.isdecimal() and int(told) in ancestors(pid) else nearest_program_above(pid)
    return _noted_session(pid, config) or _session_without_note(told_pid)


def session_in(process: ProcessIdentity, config: Path) -> ClaudeSession | None:
    """The session that runs in a known process now, None where it has no note (or has ended)."""
    note = _note_on(process, config)
    return None if note is None else _session_of_note(process, note)


def transcript_of(process: ProcessIdentity, config: Path) -> Path | None:
    """The transcript that a known process writes now; None where it has no note (or has ended)."""
    session = session_in(process, config)
    if session is None or session.session_id is None:
        return None
    return transcript_path(config, session.session_id, session.working_folder or "")


def transcript_path(config: Path, session_id: str, cwd: str) -> Path:
    """Where a session's transcript is, or will be once it has a first record.

    Claude Code names the folder after the working folder that the session began in, cuts a long
    name, and keeps it when the session moves: so the session's id finds a file that is elsewhere.
    """
    name = f"{session_id}.jsonl"
    expected = Path(f"{config}/projects/{_NOT_IN_A_NAME.sub('-', cwd)}/{name}")
    if expected.is_file():
        return expected
    return next((config / "projects").glob(f"*/{name}"), expected)


def _noted_session(pid: int, config: Path) -> ClaudeSession | None:
    for ancestor in ancestors(pid):
        identity = identity_of(ancestor)
        session = None if identity is None else session_in(identity, config)
        if session is not None:
            return session
    return None


def _session_without_note(pid: int | None) -> ClaudeSession | None:
    identity = None if pid is None else identity_of(pid)
    return None if identity is None else ClaudeSession(identity, None, None)


def _session_of_note(process: ProcessIdentity, note: Mapping[str, Any]) -> ClaudeSession:
    session_id, cwd = note.get("sessionId"), note.get("cwd")
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        return ClaudeSession(process, None, None)
    return ClaudeSession(process, session_id, cwd if isinstance(cwd, str) else None)


def _note_on(process: ProcessIdentity, config: Path) -> Mapping[str, Any] | None:
    """The note, unless it is of an earlier process that had the same pid and left it when it was killed."""
    try:
        with open(f"{config}/sessions/{process.pid}.json", "rb") as file:  # noqa: PTH123 (a third of a Path's time)
            note = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or note.get("pid", process.pid) != process.pid:
        return None
    return note if _started_with(process, note.get("procStart")) else None


def _started_with(process: ProcessIdentity, start: object) -> bool:
    """Whether a note's `procStart` is this process's: the ticks of /proc on Linux, `ps -o lstart` elsewhere.

    Older notes have none; then a launcher is not believed to be Claude Code.
    """
    if start is None or sys.platform != "linux":
        name = name_of(process.pid)
        return name is not None and not is_launcher(name)
    return str(start) == str(process.start)
