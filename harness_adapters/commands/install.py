"""`agent-channel install`: tells the coding agents of this account to start our server, and what it takes besides."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from channel.place import default_database
from harness_adapters.commands.changing import (
    Step,
    add_options,
    agrees,
    apply,
    carry_out,
    interrupts_wait,
    on_terminal,
    planned,
)
from harness_adapters.commands.output import EXIT_OK, database_for_people, fail, show
from harness_adapters.installation import claude_plugin
from harness_adapters.installation.client import Account, Client, cache_around, own_registration
from harness_adapters.installation.clients import CLIENTS, all_clients
from harness_adapters.installation.permission_rule import planned_rule, settings_file, streamer_rule
from harness_adapters.installation.skill import planned_copy, skill_files

CLAUDE = "claude-code"


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    account = Account.own()
    clients = _chosen(account, options.client)
    if not clients:
        return fail(
            f"no coding agent was found: none of {', '.join(CLIENTS)} is on PATH or has its folder. "
            "Name one with --client if it is here all the same."
        )
    if cache := cache_around(Path(sys.prefix)):
        return fail(
            f"nothing was registered: this agent-channel is in a cache, {cache}, and would be gone when it is emptied. "
            "Install it to stay, such as with `uv tool install`, and run that one."
        )
    chosen = _registered_database(database)
    status = carry_out(_steps(account, clients, chosen, options), options)
    claude = next((client for client in clients if client.name == CLAUDE), None)
    if status == EXIT_OK and claude and not (options.allow_streamer or options.dry_run or options.json):
        status = _offer_rule(account, claude, chosen, options)
    if status == EXIT_OK and on_terminal() and not (options.dry_run or options.json):
        print("New sessions have it; `agent-channel doctor` tries it out.")
    return status


def parser() -> argparse.ArgumentParser:
    what = (
        "Register the server with the coding agents of this account, for the channel that --db names. "
        "Each file that is changed keeps a backup beside it, and nothing but our entry changes."
    )
    command = argparse.ArgumentParser(prog="agent-channel install", description=what)
    add_options(command)
    command.add_argument("--skill", action="store_true", help="also copy the skill for Claude Code and Codex")
    command.add_argument(
        "--plugin",
        action="store_true",
        help="also make the skill a plugin of Claude Code, whose terminal program then runs the streamer by itself",
    )
    command.add_argument(
        "--allow-streamer",
        action="store_true",
        help="also let Claude Code run the streamer without asking: one permission rule",
    )
    return command


def _chosen(account: Account, names: Sequence[str]) -> list[Client]:
    return [client for client in all_clients(account) if (client.name in names if names else client.is_found())]


def _registered_database(database: Path | None) -> Path | None:
    """None where it is the one that a server opens unless it is told otherwise."""
    chosen = database_for_people(database)
    return None if chosen == default_database() else chosen


def _steps(
    account: Account, clients: Sequence[Client], database: Path | None, options: argparse.Namespace
) -> list[Step]:
    wanted, skills = own_registration(database), skill_files(account)
    steps = []
    for client in clients:
        is_claude = client.name == CLAUDE
        steps.append(planned(client, "server", client.place, client.planned_install, wanted))
        if client.name in skills and (options.skill or (options.plugin and is_claude)):
            steps.append(planned(client, "skill", skills[client.name], planned_copy, skills[client.name]))
        if is_claude and (options.plugin or claude_plugin.is_installed(account)):  # one that is there is renewed
            folder = claude_plugin.plugin_folder(account)
            steps.append(planned(client, "plugin", folder, claude_plugin.planned_install, account, wanted))
        if is_claude and options.allow_streamer:
            steps.append(_rule_step(account, client, database))
    return steps


def _rule_step(account: Account, client: Client, database: Path | None) -> Step:
    return planned(client, "permission rule", settings_file(account), planned_rule, account, database)


def _offer_rule(account: Account, client: Client, database: Path | None, options: argparse.Namespace) -> int:
    """Asked by itself, and never taken as said with --yes: it lets a command run without asking."""
    step = _rule_step(account, client, database)
    if step.problem:
        fail(f"{step.problem.reason}. {step.problem.by_hand}")  # what was asked for is done all the same
    if step.change is None:
        return EXIT_OK
    what = f"Claude Code asks each time before it runs the streamer. This rule lets it:\n  {streamer_rule(database)}"
    if options.yes or not on_terminal():
        print(f"{what}\nIt was not added: run `agent-channel install --allow-streamer` for that.", file=sys.stderr)
        return EXIT_OK
    print(what)
    if agrees(f"Add it to {settings_file(account)}?"):
        with interrupts_wait():
            apply(step)
        return fail(f"{step.problem.reason}. {step.problem.by_hand}") if step.problem else show(f"{step.said}\n")
    return EXIT_OK
