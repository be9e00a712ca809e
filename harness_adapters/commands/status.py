"""`agent-channel status`: which coding agents are here, and what each is told to run as our server.

It reads their configuration and nothing more; `agent-channel doctor` starts what is configured.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from channel.place import default_database
from harness_adapters.commands.output import aligned, as_json, printable, show
from harness_adapters.installation import claude_plugin
from harness_adapters.installation.client import (
    Account,
    CantRead,
    Client,
    Registration,
    Version,
    own_registration,
    version_of,
)
from harness_adapters.installation.clients import all_clients
from harness_adapters.installation.permission_rule import is_allowed, settings_file, streamer_rule


class ClientStatus(NamedTuple):
    """`registration`: None where there is none; `runs`: what it comes to; `problem`: why that is not known, or ""."""

    client: Client
    version: Version
    registration: Registration | None
    runs: str
    problem: str

    @property
    def database(self) -> Path | None:
        return None if self.registration is None else self.registration.database or default_database()


class RuleStatus(NamedTuple):
    """`allowed`: None where it can't be told, and `problem` says why."""

    rule: str | None
    allowed: bool | None
    problem: str = ""


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    account = Account.own()
    statuses = [_status(client, account) for client in all_clients(account)]
    databases = sorted({str(each.database) for each in statuses if each.database})
    rule = _rule_status(account, databases)
    if options.json:
        return show(as_json(_as_json(account, statuses, databases, rule)))
    return show(_text(account, statuses, databases, rule))


def parser() -> argparse.ArgumentParser:
    what = "Which coding agents are here, what each is told to run as our server, and whether all use one channel."
    command = argparse.ArgumentParser(prog="agent-channel status", description=what)
    command.add_argument("--json", action="store_true", help="for programs")
    return command


def _status(client: Client, account: Account) -> ClientStatus:
    program = client.program()
    version = Version(None) if program is None else version_of(program, account)
    try:
        registration = client.registered()
    except CantRead as error:
        return ClientStatus(client, version, None, "", str(error))
    return ClientStatus(client, version, registration, "" if registration is None else _runs(registration, account), "")


def _runs(registration: Registration, account: Account) -> str:
    """What its command comes to: "this installation", "another installation", "another program" or "nothing"."""
    if account.program(registration.command) is None:
        return "nothing"
    if not registration.is_agent_channel:
        return "another program"
    is_ours = registration.words == own_registration(registration.database).words
    return "this installation" if is_ours else "another installation"


def _rule_status(account: Account, databases: Sequence[str]) -> RuleStatus:
    """Of the rule for the one database that all use; of the default one's where none is registered."""
    only = Path(databases[0]) if databases else default_database()
    rule = streamer_rule(None if only == default_database() else only)
    try:
        return RuleStatus(rule, rule is not None and is_allowed(account, rule))
    except CantRead as error:
        return RuleStatus(rule, None, str(error))


def _text(account: Account, statuses: Sequence[ClientStatus], databases: Sequence[str], rule: RuleStatus) -> str:
    rows = [("CLIENT", "VERSION", "SERVER", "RUNS"), *map(_row, statuses)]
    problems = [f"{each.client.title}: {each.problem}\n" for each in statuses if each.problem]
    return "".join(
        [
            aligned(rows),
            *problems,
            *map(_command_line, statuses),
            _databases_text(databases),
            _rule_text(rule),
            _plugin_text(_plugin(account)),
        ]
    )


def _row(status: ClientStatus) -> tuple[str, ...]:
    version = status.version.text or ("found, version unknown" if status.client.is_found() else "not found")
    if status.problem:
        return status.client.title, printable(version), "unknown", ""
    if status.registration is None:
        return status.client.title, printable(version), "not registered", ""
    server = "registered" if status.registration.enabled else "registered, switched off"
    return status.client.title, printable(version), server, status.runs


def _command_line(status: ClientStatus) -> str:
    if status.registration is None:
        return ""
    gone = ", which is not there" if status.runs == "nothing" else ""
    return f"{status.client.title} runs {printable(' '.join(status.registration.words))}{gone}\n"


def _databases_text(databases: Sequence[str]) -> str:
    if not databases:
        return "Nothing is registered: run `agent-channel install`.\n"
    if len(databases) == 1:
        return f"The channel is {databases[0]}.\n"
    named = ", ".join(databases)
    return f"They use different channels ({named}): run `agent-channel --db FILE install` with one of them.\n"


def _rule_text(rule: RuleStatus) -> str:
    if rule.problem:
        return f"Whether Claude Code may run the streamer can't be told: {rule.problem}\n"
    if rule.rule is None:
        return "Claude Code asks before it runs the streamer: a path in it needs quotes, and no rule matches those.\n"
    if rule.allowed:
        return f"Claude Code may run the streamer: {rule.rule}\n"
    return "Claude Code asks before it runs the streamer: `agent-channel install --allow-streamer` allows it.\n"


def _plugin(account: Account) -> str | None:
    """Its folder; None: it is not installed."""
    return str(claude_plugin.plugin_folder(account)) if claude_plugin.is_installed(account) else None


def _plugin_text(plugin: str | None) -> str:
    return f"Claude Code's terminal program runs the streamer by itself: the plugin is in {plugin}\n" if plugin else ""


def _as_json(
    account: Account, statuses: Sequence[ClientStatus], databases: Sequence[str], rule: RuleStatus
) -> dict[str, Any]:
    return {
        "clients": [_client_as_json(each) for each in statuses],
        "databases": databases,
        "same_database": len(databases) <= 1,
        "streamer": {**rule._asdict(), "settings": str(settings_file(account))},
        "plugin": _plugin(account),
    }


def _client_as_json(status: ClientStatus) -> dict[str, Any]:
    registration = status.registration
    program = status.client.program()
    return {
        "client": status.client.name,
        "found": status.client.is_found(),
        "program": None if program is None else str(program),
        "version": status.version.text,
        "place": status.client.place,
        "registered": None
        if registration is None
        else {
            "command": registration.command,
            "args": list(registration.args),
            "env": dict(registration.env),
            "env_vars": list(registration.env_vars),
            "enabled": registration.enabled,
            "runs": status.runs,
            "database": str(status.database),
        },
        "problem": status.problem or None,
    }
