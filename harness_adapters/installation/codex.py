"""Codex: the table `mcp_servers.agent-channel` of its config.toml.

tomlkit says what the file means and changes values in our table. Our table as a whole is put at the end of the file,
and taken out again, as text: tomlkit puts a new one in front of a comment that belongs to the next table, or takes
keys into it that stand below a dotted key (0.15). Whatever was done, the result must mean the same but for ours.
`codex mcp add` is not used: it rewrites all server tables, without their comments, and drops settings (0.171.0).

Where it is and what it holds: https://developers.openai.com/codex/config-reference, and the real Codex's own
`mcp add`, `mcp list` and `mcp get`. A server gets no CODEX_HOME from Codex unless `env_vars` names it.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from harness_adapters.installation.client import SERVER_NAME, Account, Registration
from harness_adapters.installation.file_client import FileClient, NotEditable, registration_of

SERVERS = "mcp_servers"
PASSED_ON = ("CODEX_HOME",)
BOM = "\ufeff"

TEXT_CHARACTERS_MAX = 250_000
"""tomlkit takes a second for so many, and a change takes several parses; a thousand trusted projects are 60,000."""


def _key(name: str) -> str:
    return f"(?:{name}|\"{name}\"|'{name}')"


_HEADER = re.compile(
    rf"^[ \t]*\[[ \t]*{_key(SERVERS)}[ \t]*\.[ \t]*{_key(SERVER_NAME)}[ \t]*(?P<end>[.\]])[^\n]*\n?", re.MULTILINE
)
"""The line that begins our table, or (`end` is a dot) a table within it."""

_COMMAND_LINE = re.compile(r"^[ \t]*command[ \t]*=[^\n]*\n", re.MULTILINE)
_NEXT_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_BLANK_LINE_ABOVE = re.compile(r"(?:\A|\n)(\r?\n)\Z")
_BLANKS_AND_COMMENTS = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?\r?\n)*(?:^[ \t]*#[^\n]*)?\Z", re.MULTILINE)


def codex(account: Account) -> FileClient:
    return FileClient("codex", "Codex", account, ("codex",), config_file, CodexSyntax())


def config_file(account: Account) -> Path:
    return account.folder("CODEX_HOME", ".codex") / "config.toml"


class CodexSyntax:
    """`Syntax` of config.toml."""

    def entry(self, text: str) -> Registration | None:
        table = _servers(_meaning(text)).get(SERVER_NAME)
        if table is None:
            return None
        return replace(registration_of(table), enabled=table.get("enabled") is not False)

    def with_entry(self, text: str, wanted: Registration) -> str:
        before = _meaning(text)
        present = self.entry(text)
        ours = dict(_servers(before).get(SERVER_NAME, {}))
        ours |= {"command": wanted.command, "args": list(wanted.args)}
        if present is None or not set(PASSED_ON) <= set(present.env_vars):
            ours["env_vars"] = [*ours.get("env_vars", ()), *PASSED_ON]
        after = _updated(text, ours) if present else _added(text, ours)
        _require_meaning(after, {**before, SERVERS: {**_servers(before), SERVER_NAME: ours}})
        return after

    def without_entry(self, text: str, original: str | None) -> str:
        before = _meaning(text)
        rest = {name: table for name, table in _servers(before).items() if name != SERVER_NAME}
        after = _without_tables(text)
        if not _means(after, {**before, SERVERS: rest}):
            after = _without_key(text)
        _require_meaning(after, {**before, SERVERS: rest})
        return after

    def snippet(self, wanted: Registration) -> str:
        return _table_text({"command": wanted.command, "args": list(wanted.args), "env_vars": list(PASSED_ON)}, "\n")


def _meaning(text: str) -> dict[str, Any]:
    if len(text) > TEXT_CHARACTERS_MAX:
        raise NotEditable(f"it is longer than the {TEXT_CHARACTERS_MAX:,} characters that are looked through")
    try:
        meaning: dict[str, Any] = tomlkit.parse(text.removeprefix(BOM)).unwrap()
    except (TOMLKitError, RecursionError) as error:
        raise NotEditable(f"it is not valid TOML ({error})") from error
    return meaning


def _servers(meaning: dict[str, Any]) -> dict[str, Any]:
    servers = meaning.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise NotEditable(f"its {SERVERS} is no table")
    return servers


def _means(text: str, wanted: dict[str, Any]) -> bool:
    """An empty table of servers is as good as none."""
    found = _meaning(text)
    return {**found, SERVERS: _servers(found)} == {**wanted, SERVERS: _servers(wanted)}


def _require_meaning(text: str, wanted: dict[str, Any]) -> None:
    if not _means(text, wanted):
        raise NotEditable(f"its {SERVERS} are written in a way that can't be edited without touching others")


def _added(text: str, ours: dict[str, Any]) -> str:
    document = tomlkit.parse(text.removeprefix(BOM))
    servers = document.get(SERVERS)
    if isinstance(servers, InlineTable):
        inline = tomlkit.inline_table()
        inline.update(ours)
        servers[SERVER_NAME] = inline
        return _dumped(text, document)
    newline = _newline(text)
    end = "" if not text or text.endswith("\n") else newline
    return f"{text}{end}{newline if text else ''}{_table_text(ours, newline)}"


def _updated(text: str, ours: dict[str, Any]) -> str:
    """Each value that differs, one after the other; a key that is new stands below our command."""
    for key in ("command", "env_vars", "args"):
        document = tomlkit.parse(text.removeprefix(BOM))
        table: Any = document[SERVERS][SERVER_NAME]
        place = _below_command(text)
        if key not in table and place is not None:
            text = f"{text[:place]}{_line(key, ours[key])}{_newline(text)}{text[place:]}"
        elif key not in table or table[key].unwrap() != ours[key]:
            table[key] = ours[key]
            text = _dumped(text, document)
    return text


def _below_command(text: str) -> int | None:
    """None: ours is no table of its own."""
    header = next((each for each in _HEADER.finditer(text) if each["end"] == "]"), None)
    if header is None:
        return None
    following = _NEXT_HEADER.search(text, header.end())
    command = _COMMAND_LINE.search(text, header.end(), following.start() if following else len(text))
    return command.end() if command else None


def _without_tables(text: str) -> str:
    """Without our table, those within it, and the blank line above each. Comments after its last value stay."""
    for header in reversed(list(_HEADER.finditer(text))):
        following = _NEXT_HEADER.search(text, header.end())
        kept = _BLANKS_AND_COMMENTS.search(text, header.end(), following.start() if following else len(text))
        above = _BLANK_LINE_ABOVE.search(text, 0, header.start())
        without = text[: above.start(1) if above else header.start()] + text[kept.start() if kept else len(text) :]
        if _others(without) == _others(text):  # not a line of some long string
            text = without
    return text


def _others(text: str) -> dict[str, Any] | None:
    """What the text means without ours. None: it is no TOML."""
    try:
        meaning = _meaning(text)
    except NotEditable:
        return None
    return {**meaning, SERVERS: {name: each for name, each in _servers(meaning).items() if name != SERVER_NAME}}


def _without_key(text: str) -> str:
    """Ours as a dotted key or in an inline table."""
    document = tomlkit.parse(text.removeprefix(BOM))
    del document[SERVERS][SERVER_NAME]
    return _dumped(text, document)


def _table_text(ours: dict[str, Any], newline: str) -> str:
    lines = [f"[{SERVERS}.{SERVER_NAME}]", *(_line(key, value) for key, value in ours.items())]
    return "".join(line + newline for line in lines)


def _line(key: str, value: Any) -> str:
    return f"{key} = {tomlkit.item(value).as_string()}"


def _dumped(text: str, document: tomlkit.TOMLDocument) -> str:
    return (BOM if text.startswith(BOM) else "") + tomlkit.dumps(document)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text.partition("\n")[0] + "\n" else "\n"
