"""`agent-channel uninstall`: takes back what `install` did, and nothing else. The channel itself stays."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness_adapters.commands.changing import Step, add_options, carry_out, on_terminal, planned
from harness_adapters.installation import claude_plugin
from harness_adapters.installation.client import Account, Client
from harness_adapters.installation.clients import all_clients
from harness_adapters.installation.permission_rule import planned_withdrawal, settings_file
from harness_adapters.installation.skill import planned_removal, skill_files

CLAUDE = "claude-code"


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    account = Account.own()
    steps = _steps(
        account, [each for each in all_clients(account) if each.name in options.client or not options.client]
    )
    if not options.client:
        steps = [step for step in steps if step.state != "unchanged"]
    if not steps and on_terminal() and not options.json:
        print("There is nothing to remove.")
    return carry_out(steps, options)


def parser() -> argparse.ArgumentParser:
    what = (
        "Remove the server, the skill's copies, the plugin and the permission rule that an install added. Every other "
        "byte of the agents' files stays as it is; so does the channel, with its messages."
    )
    command = argparse.ArgumentParser(prog="agent-channel uninstall", description=what)
    add_options(command)
    return command


def _steps(account: Account, clients: Sequence[Client]) -> list[Step]:
    skills = skill_files(account)
    steps = []
    for client in clients:
        steps.append(planned(client, "server", client.place, client.planned_removal))
        if client.name == CLAUDE:  # it is in the skill's folder, which goes with the skill
            folder = claude_plugin.plugin_folder(account)
            steps.append(planned(client, "plugin", folder, claude_plugin.planned_removal, account))
        if client.name in skills:
            steps.append(planned(client, "skill", skills[client.name], planned_removal, skills[client.name]))
        if client.name == CLAUDE:
            steps.append(planned(client, "permission rule", settings_file(account), planned_withdrawal, account))
    return steps
