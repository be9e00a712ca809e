"""The one rule that lets Claude Code run the streamer without asking, in its settings.json.

Its mode `auto` honours only the exact command, and no rule with a quoted word matches (2.1.332; ARCHITECTURE.md).
https://code.claude.com/docs/en/settings ("Permission settings").
"""

from pathlib import Path

from harness_adapters.claude.launch_command import launch_command
from harness_adapters.installation.client import Account, CantChange, CantRead
from harness_adapters.installation.file_change import FileChange, as_bytes, backup_of, read_text
from harness_adapters.installation.file_client import NotEditable
from harness_adapters.installation.json_text import parse, value_at, with_element, without_element

ALLOWED = ("permissions", "allow")
STREAMER = "-m harness_adapters.cli monitor"
"""What every rule for the streamer holds, whichever installation and database it is for."""


def settings_file(account: Account) -> Path:
    return account.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"


def streamer_rule(database: Path | None) -> str | None:
    """The rule for the command that `join` returns. None: a path in it needs quotes, and no rule would match.

    `database`: None is the default one.
    """
    default = Path("default")
    command = launch_command(database or default, default, None)
    return None if "'" in command else f"Bash({command})"


def is_allowed(account: Account, rule: str) -> bool:
    """Whether the rule stands in the user's settings. Raises CantRead."""
    path = settings_file(account)
    try:
        return rule in _allowed(read_text(path) or "")
    except (OSError, ValueError, NotEditable) as error:
        raise CantRead(f"{path} can't be read: {error}") from error


def planned_rule(account: Account, database: Path | None) -> FileChange | None:
    """None: it stands there already. Raises CantChange."""
    path, rule = settings_file(account), streamer_rule(database)
    if rule is None:
        raise CantChange(
            "a path in the streamer's command needs quotes, and no permission rule of Claude Code matches those",
            "Have agent-channel and the channel where no path holds a blank; else expect to be asked each time.",
        )
    try:
        before, original = read_text(path), read_text(backup_of(path))
        if rule in _allowed(before or ""):
            return None
        after = with_element(before or "", ALLOWED, rule)
        is_first = not _added(before, original)
    except (OSError, ValueError, NotEditable) as error:
        by_hand = f'Add this to "permissions", "allow" in it: "{rule}"'
        raise CantChange(f"{path} is left as it is: {error}", by_hand) from error
    return FileChange(path, as_bytes(before), as_bytes(after), keep_before=is_first)


def planned_withdrawal(account: Account) -> FileChange | None:
    """Of the rules that installs added, for whatever command and database. None: there is none. Raises CantChange."""
    path = settings_file(account)
    try:
        before, original = read_text(path), read_text(backup_of(path))
        added = _added(before, original)
        if before is None or original is None or not added:
            return None
        after = before
        for rule in added:
            after = without_element(after, ALLOWED, rule, original)
        if _with_all(original, added) == before:
            after = original
    except (OSError, ValueError, NotEditable) as error:
        by_hand = f"Take the rules with `{STREAMER}` out of it yourself."
        raise CantChange(f"{path} is left as it is: {error}", by_hand) from error
    return FileChange(path, as_bytes(before), as_bytes(after) or None, drop_backup=after == original)


def _added(before: str | None, original: str | None) -> list[str]:
    """The streamer's rules that stand there and did not when the backup was made; without a backup nobody knows."""
    if before is None or original is None:
        return []
    known = _allowed(original)
    return [each for each in _allowed(before) if isinstance(each, str) and STREAMER in each and each not in known]


def _with_all(text: str, rules: list[str]) -> str:
    for rule in rules:
        text = with_element(text, ALLOWED, rule)
    return text


def _allowed(text: str) -> list[object]:
    allowed = value_at(parse(text), ALLOWED)
    if allowed is not None and not isinstance(allowed, list):
        raise NotEditable(f"its {'.'.join(ALLOWED)} is no array")
    return allowed or []
