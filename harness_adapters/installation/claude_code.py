"""Claude Code: through its own `claude mcp`, for its user scope (every project).

Its file, ~/.claude.json, is the state of its running sessions, which rewrite it: it is read here, for the exact
arguments (`claude mcp get` shows them joined by blanks), and never written. The commands as 2.1.332 has them;
`add` and `add-json` refuse a name that is taken, so a changed entry is removed first.
https://code.claude.com/docs/en/mcp ("MCP installation scopes").
"""

import difflib
import json
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.installation.client import (
    SERVER_NAME,
    Account,
    CantChange,
    CantRead,
    Registration,
    require_ours,
)
from harness_adapters.installation.file_change import read
from harness_adapters.installation.file_client import NotEditable, registration_of

COMMAND_S_MAX = 60
"""`get` starts the server and waits up to 30 s for it."""

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ClaudeCode:
    account: Account
    name: str = "claude-code"
    title: str = "Claude Code"

    @property
    def place(self) -> str:
        return f"{self._state_file} (through `claude mcp`)"

    def program(self) -> Path | None:
        """On PATH, or where its own installers put it."""
        installed = (self.account.home / ".local" / "bin" / "claude", self.folder / "local" / "claude")
        return self.account.program("claude") or next((path for path in installed if path.exists()), None)

    def is_found(self) -> bool:
        return self.program() is not None

    @property
    def folder(self) -> Path:
        """Its settings, skills and transcripts."""
        return self.account.folder("CLAUDE_CONFIG_DIR", ".claude")

    def registered(self) -> Registration | None:
        entry = self._entry()
        try:
            return None if entry is None else registration_of(entry)
        except NotEditable as error:
            raise CantRead(f"{self._state_file}: {error}") from error

    def planned_install(self, wanted: Registration) -> "ClaudeChange | None":
        present, entry = self.registered(), self._entry()
        require_ours(present, self.place)
        ours = {**(entry or {}), "type": "stdio", "command": wanted.command, "args": list(wanted.args)}
        if entry is not None and (present == wanted or ours == entry):
            return None
        return ClaudeChange(self.account, self._required_program(wanted), entry, ours)

    def planned_removal(self) -> "ClaudeChange | None":
        present, entry = self.registered(), self._entry()
        require_ours(present, self.place)
        return None if entry is None else ClaudeChange(self.account, self._required_program(None), entry, None)

    def _required_program(self, wanted: Registration | None) -> Path:
        """Raises CantChange with the command for a person: that adds what is wanted, or removes it (None)."""
        if program := self.program():
            return program
        words = ["mcp", "remove", SERVER_NAME, "-s", "user"] if wanted is None else _add_words(wanted.words)
        raise CantChange("the program `claude` is not on PATH", f"Where it is, run: {shlex.join(['claude', *words])}")

    @property
    def _state_file(self) -> Path:
        return self.account.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json"

    def _entry(self) -> Entry | None:
        try:
            content = read(self._state_file)
            state = None if content is None else json.loads(content)
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise CantRead(f"{self._state_file} can't be read: {why}") from error
        servers = state.get("mcpServers") if isinstance(state, dict) else None
        entry = servers.get(SERVER_NAME) if isinstance(servers, dict) else None
        return entry if isinstance(entry, dict) else None


@dataclass(frozen=True)
class ClaudeChange:
    """`before` and `after`: the entry in its user scope, None where there is none."""

    account: Account
    program: Path
    before: Entry | None
    after: Entry | None

    def diff(self) -> str:
        name = f"claude mcp: {SERVER_NAME} (user scope)"
        return "".join(
            difflib.unified_diff(
                _lines(self.before),
                _lines(self.after),
                "/dev/null" if self.before is None else name,
                "/dev/null" if self.after is None else name,
            )
        )

    def apply(self) -> str:
        if self.before is not None:
            self._run("remove", SERVER_NAME, "-s", "user")
        if self.after is None:
            return "removed by `claude mcp remove`"
        try:
            self._add(self.after)
        except CantChange:
            if self.before is not None:
                self._add(self.before)
            raise
        return f"added by `claude mcp add`; `claude mcp get` says: {self._connection()}"

    def _add(self, entry: Entry) -> None:
        if set(entry) <= {"type", "command", "args"}:
            self._run(*_add_words([entry["command"], *entry["args"]])[1:])
        else:
            self._run("add-json", "--scope", "user", SERVER_NAME, json.dumps(entry))

    def _connection(self) -> str:
        lines = [line.strip() for line in self._run("get", SERVER_NAME).splitlines()]
        return next((line.removeprefix("Status:").strip() for line in lines if line.startswith("Status:")), "nothing")

    def _run(self, *words: str) -> str:
        """What `claude mcp WORDS` prints; in the home folder, so that no project's own servers count."""
        command = [str(self.program), "mcp", *words]
        try:
            done = subprocess.run(
                command,
                check=False,
                cwd=self.account.home,
                env=dict(self.account.variables),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMMAND_S_MAX,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CantChange(f"`claude mcp {words[0]}` failed: {error}", "Try it in a shell.") from error
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise CantChange(f"`claude mcp {words[0]}` failed: {said}", f"Try it in a shell: {shlex.join(command)}")
        return done.stdout


def _add_words(server: list[str] | tuple[str, ...]) -> list[str]:
    return ["mcp", "add", "--scope", "user", SERVER_NAME, "--", *server]


def _lines(entry: Entry | None) -> list[str]:
    return [] if entry is None else (json.dumps(entry, indent=2, ensure_ascii=False) + "\n").splitlines(keepends=True)
