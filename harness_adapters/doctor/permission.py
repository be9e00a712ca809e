"""Whether Claude Code runs the streamer without asking: by the one rule in its settings, or by the plugin."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness_adapters.claude.launch_command import launch_command
from harness_adapters.doctor.finding import Finding, failed, passed, warned
from harness_adapters.doctor.servers import Started
from harness_adapters.doctor.surroundings import Surroundings
from harness_adapters.installation import claude_plugin
from harness_adapters.installation.client import CantChange
from harness_adapters.installation.file_change import read

_MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)


async def streamer_permission(around: Surroundings, started: Sequence[Started]) -> AsyncIterator[Finding]:
    """Of each server that Claude Code starts."""
    for server in started:
        if server.client.name == "claude-code":
            for finding in (*_plugin(around, server), *_rule(around, server)):
                yield finding


def _plugin(around: Surroundings, server: Started) -> Iterator[Finding]:
    """Where there is one: whether it is as this installation makes it, for the channel of the registered server."""
    if not claude_plugin.is_installed(around.account):
        return
    folder = claude_plugin.plugin_folder(around.account)
    try:
        is_as_made_here = claude_plugin.planned_install(around.account, server.registration) is None
    except CantChange as error:
        yield failed(f"Claude Code: the plugin: {error.reason}", error.by_hand)
        return
    if is_as_made_here:
        yield passed(f"Claude Code's terminal program runs the streamer by itself: the plugin in {folder} is sound")
    else:
        yield failed(
            f"Claude Code: the plugin in {folder} is of another channel, or of another agent-channel than this one",
            "agent-channel install --client claude-code renews it.",
        )


def _rule(around: Surroundings, server: Started) -> Iterator[Finding]:
    """Compares the settings with the very command that `join` of the started server returns.

    A rule that denies counts more than one that asks, and that more than one that allows, wherever each stands
    (https://code.claude.com/docs/en/permissions).
    """
    command = streamer_command(around, server)
    if "'" in command:
        yield warned(
            f"Claude Code: a path in the streamer's command needs quotes, and no rule matches those: {command}",
            "Have agent-channel and the channel where no path holds a blank; else it asks each time.",
        )
        return
    allowed: list[str] = []
    asking: list[str] = []
    for path in _settings_files(around):
        try:
            permissions = _permissions(path)
        except ValueError as error:
            yield failed(f"Claude Code: {path} can't be read as JSON: {error}", f"Mend {path}.")
            continue
        if denying := _covering(_rules(permissions, "deny"), command):
            yield failed(f"Claude Code: {path} forbids the streamer: {denying[0]}", "Take that rule out.")
            return
        allowed += _rules(permissions, "allow")
        asking += _covering(_rules(permissions, "ask"), command)
    if asking:
        yield failed(
            f"Claude Code asks each time before it runs the streamer, and print mode refuses: {asking[0]} says so",
            "Take that rule out of permissions.ask: it counts more than one that allows the streamer.",
        )
        return
    yield _judged(around, command, allowed)


def _judged(around: Surroundings, command: str, allowed: Sequence[str]) -> Finding:
    rule = f"Bash({command})"
    settings = around.claude_config / "settings.json"
    add = f"agent-channel install --allow-streamer adds it to permissions.allow of {settings}: {rule}"
    if rule in allowed:
        return passed(f"Claude Code runs the streamer without asking: {rule}")
    if wider := _covering(allowed, command):
        return warned(
            f"Claude Code runs the streamer without asking by {wider[0]!r}, which its default mode, `auto`, sets aside",
            add,
        )
    if claude_plugin.is_installed(around.account):
        return warned(
            "Claude Code has no rule for the streamer, which print mode needs; the plugin is not armed there", add
        )
    return failed(
        "Claude Code has no rule that lets it run the streamer: it asks each time, and print mode refuses", add
    )


def streamer_command(around: Surroundings, server: Started) -> str:
    """What `join` returns: with that server's own Python, and its file as it is named there."""
    named, without_option = server.registration.database, around.channel_without_option
    database = without_option if named is None else around.folder / named.expanduser()
    words = shlex.split(launch_command(database, without_option, None))
    return shlex.join([server.python, *words[1:]])


def _settings_files(around: Surroundings) -> Sequence[Path]:
    project = around.folder / ".claude"
    return (
        *_MANAGED,
        around.claude_config / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
    )


def _permissions(path: Path) -> Any:
    """Raises ValueError."""
    try:
        settings = json.loads(read(path) or b"{}")
    except OSError:
        return {}
    except RecursionError as error:
        raise ValueError(str(error)) from error
    return settings.get("permissions", {}) if isinstance(settings, dict) else {}


def _rules(permissions: Any, kind: str) -> list[str]:
    rules = permissions.get(kind, []) if isinstance(permissions, dict) else []
    return [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []


def _covering(rules: Sequence[str], command: str) -> list[str]:
    """Those that are about the command: of the forms that Claude Code 2.1.332 was seen to take for Monitor, and with a
    wildcard anywhere."""
    return [rule for rule in rules if _covers(rule, command)]


def _covers(rule: str, command: str) -> bool:
    if rule in ("Bash", "Monitor"):
        return True
    inner = re.fullmatch(r"Bash\((.*)\)", rule, re.DOTALL)
    if inner is None:
        return False
    parts = re.sub(r":\*\Z", "*", inner[1]).split("*")
    return re.fullmatch(".*".join(map(re.escape, parts)), command) is not None
