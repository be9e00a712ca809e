"""What the pages say of the code is read off the code again."""

import argparse
import os
import re
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from channel.delivery_states import MONITOR_TABLE, QUEUE_TABLE, State, Table
from channel.messages import Message
from harness_adapters.claude.framing import Header, encode, flush_bytes
from harness_adapters.cli import COMMANDS
from harness_adapters.cli import _parser as command_line
from harness_adapters.codex.envelope import envelope
from harness_adapters.tool_texts import TOOLS
from tests.packaging.conftest import ROOT
from tests.packaging.pages import PAGES, README, anchors, code, links, name_of, rows, said_of_ours
from tests.real.binaries import claude_binary, codex_binary
from waiters import status

RUN_S = 60

TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
ALL_COMMANDS = ROOT / "docs" / "commands.md"

LINKING_PAGES = (*PAGES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "RELIABILITY", "SECURITY")))

EXAMPLE = Message(17, "hall", "planner", "def half(n):\n    return n // 2", None, created_at_ms=0)


def test_what_to_do_is_said_for_every_word_of_waiter_detail() -> None:
    found = rows(TROUBLESHOOTING, "What `waiter_detail` says, and what to do")
    assert [code(row[0]) for row in found] == [[word] for word in status.WORDS]
    assert all(len(row) == 3 and all(row) for row in found)


def test_the_readme_explains_every_state() -> None:
    names = [state.value for state in State]
    assert [code(row[0])[0] for row in rows(README, "Delivery states")] == names


def test_the_readme_explains_every_tool_with_its_parameters() -> None:
    signatures = []
    for tool in TOOLS:
        schema = tool["schema"]
        names = [name if name in schema["required"] else f"{name}?" for name in schema["properties"]]
        signatures.append(f"{tool['name']}({', '.join(names)})")
    assert [code(row[0])[0] for row in rows(README, "The four tools")] == signatures


def _transitions(table: list[list[str]]) -> Iterator[tuple[str, str, str]]:
    """A cell may name several states or events; `to` is one."""
    for from_cell, event_cell, to_cell in table:
        for state in code(from_cell):
            for event in code(event_cell):
                (to,) = code(to_cell)
                yield state, event, state if to == "unchanged" else to


@pytest.mark.parametrize(
    ("heading", "table"), [("A Codex thread's queue", QUEUE_TABLE), ("A Claude Code Monitor", MONITOR_TABLE)]
)
def test_the_state_tables_of_the_architecture_page_are_those_of_the_code(heading: str, table: Table) -> None:
    written = sorted(_transitions(rows(ROOT / "ARCHITECTURE.md", heading)))
    assert written == sorted((state.value, event.value, to.value) for (state, event), to in table.items())


def test_the_examples_of_a_delivery_are_what_is_written() -> None:
    readme = README.read_text()
    framed = encode(Header(EXAMPLE.message_id, EXAMPLE.room, EXAMPLE.sender), EXAMPLE.text, "")
    assert f"```text\n{flush_bytes(framed.parts).decode()}```" in readme
    assert f"```text\n{envelope(EXAMPLE, now_ms=0)}\n```" in readme


def test_the_readme_lists_every_command_with_its_summary() -> None:
    listed = {code(row[0])[0]: row[1] for row in rows(README, "Commands")}
    assert listed == {f"agent-channel {name}": command.summary for name, command in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_the_commands_names_every_option(name: str) -> None:
    section = ALL_COMMANDS.read_text().split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    parser = import_module(f"harness_adapters.commands.{COMMANDS[name].module}").parser()
    named = set(re.findall(r"--[a-z-]+", section))
    undocumented = set(_options(parser)) - named - {"--help"}
    assert undocumented == ({"--db"} if name == "monitor" else set())


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """With those of its own commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)
        yield from (option for option in action.option_strings if option.startswith("--"))


STAND_FOR = {"ID": "1", "N": "1", "K": "1", "AGE": "1h", "SECONDS": "1", "ROLE...": "ROLE"}
"""What a page writes for a value of some form."""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_in_a_line_of_text_can_be_called_so(page: Path) -> None:
    for words in said_of_ours(page):
        if words == ["COMMAND", "--help"]:
            continue
        given = command_line().parse_args([STAND_FOR.get(word, word) for word in words])
        if given.arguments:  # a command may be named without what it needs
            if given.command == "deliveries" and given.arguments[0].startswith("-"):
                given.arguments.insert(0, "list")  # the default
            import_module(f"harness_adapters.commands.{COMMANDS[given.command].module}").parser().parse_args(
                given.arguments
            )


@pytest.mark.real
def test_the_harnesses_have_the_commands_that_the_pages_name(tmp_path: Path) -> None:
    def help_of(program: Path, *words: str) -> str:
        environment = {"HOME": str(tmp_path), "PATH": os.defpath, "DISABLE_AUTOUPDATER": "1"}
        done = subprocess.run(
            [program, *words, "--help"], env=environment, capture_output=True, text=True, timeout=RUN_S, check=True
        )
        return done.stdout

    for command in ("resume", "unarchive", "mcp add"):
        assert f"codex {command}" in help_of(codex_binary(), *command.split())
    assert "--resume" in help_of(claude_binary())
    for command in ("mcp add", "mcp list", "plugin list"):
        assert f"claude {command}" in help_of(claude_binary(), *command.split())


@pytest.mark.parametrize("page", LINKING_PAGES, ids=name_of)
def test_every_link_between_the_pages_leads_somewhere(page: Path) -> None:
    lost = set()
    for link in links(page):
        target, _, anchor = link.partition("#")
        other = (page.parent / target).resolve() if target else page
        if "://" in link:
            continue
        if not other.is_file() or (anchor and anchor not in anchors(other)):
            lost.add(link)
    assert lost == set()


def test_every_page_is_reached_from_the_readme() -> None:
    named = {(ROOT / link.partition("#")[0]).resolve() for link in links(README) if "://" not in link}
    assert {page for page in PAGES if page != README} - named == set()
