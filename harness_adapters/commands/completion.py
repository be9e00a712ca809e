"""`agent-channel completion`: what makes a shell complete our commands and their options.

Names of rooms and roles are not completed: bash expands the words that it is offered, and a peer chooses those.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from harness_adapters.commands.output import PROGRAM, show

SHELLS = ("bash", "zsh")


def run(_database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    import shtab  # as slow as half of a command's start; only this one needs it

    return show(shtab.complete(_whole_parser(), options.shell) + "\n")


def parser() -> argparse.ArgumentParser:
    what = "Print what makes a shell complete agent-channel."
    command = argparse.ArgumentParser(
        prog="agent-channel completion",
        description=what,
        epilog='bash: put `eval "$(agent-channel completion bash)"` into ~/.bashrc. zsh: write the output into a file '
        "_agent-channel in a folder of $fpath.",
    )
    command.add_argument("shell", choices=SHELLS)
    return command


def _whole_parser() -> argparse.ArgumentParser:
    """All commands in one, which a run never loads."""
    from harness_adapters.cli import COMMANDS

    whole = argparse.ArgumentParser(prog=PROGRAM)
    whole.add_argument("--db", type=Path, metavar="PATH")
    whole.add_argument("--version", action="store_true")
    commands = whole.add_subparsers(dest="command")
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.summary)
        commands.choices[name] = import_module(f"harness_adapters.commands.{command.module}").parser()
    return whole
