"""A command of ours that a text tells a person to run is one that we take."""

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from harness_adapters.cli import COMMANDS

PRODUCT = Path(__file__).parents[3]
FOLDERS = ("channel", "waiters", "harness_adapters")

NAMED = re.compile(r"`(?:agent-channel )?((?:--db FILE )?([a-z]+)(?: [^`]+)?)`")
MONITOR_NAME = "messages"
"""`agent-channel messages` is what a Monitor of ours is called."""

FILLED_IN = "1"
"""In the place of what a text is given at run time: a number, or some name."""


def texts(path: Path) -> Iterator[str]:
    """The strings of a module that may be shown; docstrings are for its readers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED_IN for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def named_commands() -> set[str]:
    return {
        found[1]
        for folder in FOLDERS
        for path in (PRODUCT / folder).rglob("*.py")
        for text in texts(path)
        for found in NAMED.finditer(text)
        if "`agent-channel " in found[0] or (found[2] in COMMANDS and " --" in found[1])
    } - {MONITOR_NAME}


@pytest.mark.parametrize("words", sorted(named_commands()))
def test_a_command_that_a_text_names_is_taken(words: str) -> None:
    command, *arguments = shlex.split(words.removeprefix("--db FILE "))
    if command == "deliveries" and (not arguments or arguments[0].startswith("-")):
        arguments.insert(0, "list")  # as the command itself does
    import_module(f"harness_adapters.commands.{COMMANDS[command].module}").parser().parse_args(arguments)


def test_commands_are_found_in_texts() -> None:
    assert {"doctor", "install --allow-streamer", "--db FILE install", "deliveries"} <= named_commands()
