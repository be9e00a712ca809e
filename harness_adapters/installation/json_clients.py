"""Cursor, Antigravity CLI and OpenCode: an object of servers in a JSON file.

- Cursor: `mcpServers` in ~/.cursor/mcp.json, which its editor and its terminal program both read.
  https://cursor.com/docs/mcp ("Configuration locations").
- Antigravity CLI (`agy`): `mcpServers` in ~/.gemini/config/mcp_config.json.
  https://antigravity.google/docs/cli/mcp; its maintainers point there in google-antigravity/antigravity-cli#272.
  The older ~/.gemini/antigravity/mcp_config.json is the desktop program's, and `agy` 1.0.6 does not read it.
- OpenCode: `mcp` in ~/.config/opencode/opencode.json or .jsonc; a local server's command is one array.
  https://opencode.ai/v1/docs/config, https://opencode.ai/docs/mcp-servers. From 2.0 on servers may stand in
  `mcp.servers`; what stands right under `mcp` goes on to count (https://opencode.ai/docs/migrate-v1), so that
  is where ours goes unless the file has `mcp.servers` already. Tried with 1.18.33: it connects, and of a name in
  both files the one in the .jsonc counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness_adapters.installation.client import SERVER_NAME, Account, Registration
from harness_adapters.installation.file_client import FileClient, NotEditable, registration_of
from harness_adapters.installation.json_text import parse, value_at, with_member, without_member


def cursor(account: Account) -> FileClient:
    programs = ("cursor", "cursor-agent")
    return FileClient("cursor", "Cursor", account, programs, _cursor_file, McpServers())


def antigravity(account: Account) -> FileClient:
    return FileClient("antigravity", "Antigravity CLI", account, ("agy",), _antigravity_file, McpServers())


def opencode(account: Account) -> FileClient:
    return FileClient("opencode", "OpenCode", account, ("opencode",), _opencode_file, OpenCodeServers())


def _cursor_file(account: Account) -> Path:
    return account.home / ".cursor" / "mcp.json"


def _antigravity_file(account: Account) -> Path:
    return account.home / ".gemini" / "config" / "mcp_config.json"


def _opencode_file(account: Account) -> Path:
    """The .jsonc counts more where both are."""
    folder = account.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


@dataclass(frozen=True)
class McpServers:
    """`Syntax` of `{"mcpServers": {NAME: {"command": ..., "args": [...], "env": {...}}}}`."""

    def entry(self, text: str) -> Registration | None:
        found = value_at(parse(text), ("mcpServers", SERVER_NAME))
        if found is None:
            return None
        return replace(registration_of(found), enabled=found.get("disabled") is not True)

    def with_entry(self, text: str, wanted: Registration) -> str:
        path = ("mcpServers", SERVER_NAME)
        return _with_fields(text, path, {"command": wanted.command, "args": list(wanted.args)})

    def without_entry(self, text: str, original: str | None) -> str:
        return without_member(text, ("mcpServers", SERVER_NAME), original)

    def snippet(self, wanted: Registration) -> str:
        return self.with_entry("", wanted)


@dataclass(frozen=True)
class OpenCodeServers:
    """`Syntax` of `{"mcp": {NAME: {"type": "local", "command": [...], "environment": {...}}}}`, or in `mcp.servers`."""

    def entry(self, text: str) -> Registration | None:
        found = value_at(parse(text), self._path(text))
        if found is None:
            return None
        words = _fields(found).get("command")
        if not isinstance(words, list) or not words:
            raise NotEditable(f"what it registers as {SERVER_NAME} has no command")
        is_enabled = found.get("enabled") is not False and found.get("disabled") is not True
        usual = {"command": words[0], "args": words[1:], "env": found.get("environment")}
        return replace(registration_of(usual), enabled=is_enabled)

    def with_entry(self, text: str, wanted: Registration) -> str:
        return _with_fields(text, self._path(text), {"type": "local", "command": list(wanted.words)})

    def without_entry(self, text: str, original: str | None) -> str:
        return without_member(text, self._path(text), original)

    def snippet(self, wanted: Registration) -> str:
        return self.with_entry("", wanted)

    def _path(self, text: str) -> tuple[str, ...]:
        """Where our entry is, else where it goes. A server of 1.x may itself be called `servers`."""
        meaning = parse(text)
        servers = value_at(meaning, ("mcp", "servers"))
        is_second_form = isinstance(servers, dict) and "type" not in servers
        if is_second_form and value_at(meaning, ("mcp", SERVER_NAME)) is None:
            return ("mcp", "servers", SERVER_NAME)
        return ("mcp", SERVER_NAME)


def _with_fields(text: str, path: Sequence[str], fields: dict[str, Any]) -> str:
    """Each field that is ours, as it should be; what else a person wrote into the entry stays."""
    present = value_at(parse(text), path)
    if present is None:
        return with_member(text, path, fields)
    for name, value in fields.items():
        if _fields(present).get(name) != value:
            text = with_member(text, (*path, name), value)
    return text


def _fields(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise NotEditable(f"what it registers as {SERVER_NAME} is no object")
    return entry
