"""Claude Code's registration, with programs in its place that fail at the wrong moment."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.installation.claude_code import ClaudeCode
from harness_adapters.installation.client import Account, CantChange, CantRead, Registration
from tests.unit.harness_adapters.installation.golden import WANTED, apply

OLD = {"type": "stdio", "command": "/old/bin/agent-channel-mcp", "args": [], "timeout": 90_000}

STAND_IN = """\
#!/bin/sh
echo "$*" >> "$HOME/calls"
case "$*" in {fails}) echo "it is locked" >&2; exit 1 ;; esac
case "$2" in get) echo "  Status: connected" ;; esac
"""


def claude_that_fails_at(home: Path, pattern: str) -> ClaudeCode:
    """A program `claude` that writes down how it is called."""
    program = home / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(fails=pattern))
    program.chmod(0o755)
    return ClaudeCode(Account(home, {"HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin"}))


def register(home: Path, entry: dict[str, Any]) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"agent-channel": entry}, "projects": {}}))


def calls(home: Path) -> list[str]:
    return [line.removeprefix("mcp ") for line in (home / "calls").read_text().splitlines()]


def test_a_new_one_is_added_for_all_projects_and_tried(tmp_path: Path) -> None:
    client = claude_that_fails_at(tmp_path, "never")
    said = apply(lambda: client.planned_install(WANTED))
    words = " ".join(WANTED.words)
    assert calls(tmp_path) == [f"add --scope user agent-channel -- {words}", "get agent-channel"]
    assert "`claude mcp get` says: connected" in said


def test_one_that_is_there_as_wanted_is_not_touched(tmp_path: Path) -> None:
    client = claude_that_fails_at(tmp_path, "*")
    register(tmp_path, {"command": WANTED.command, "args": list(WANTED.args), "env": {}})
    assert client.registered() == WANTED
    assert client.planned_install(WANTED) is None
    assert not (tmp_path / "calls").exists()


def test_one_that_cant_be_added_after_the_old_one_was_removed_is_put_back(tmp_path: Path) -> None:
    client = claude_that_fails_at(tmp_path, f"*add-json*{WANTED.command}*")
    register(tmp_path, OLD)
    change = client.planned_install(WANTED)
    assert change is not None
    with pytest.raises(CantChange, match="it is locked") as refused:
        change.apply()
    assert "add-json" in refused.value.by_hand
    removed, failed, put_back = calls(tmp_path)
    assert (removed, WANTED.command in failed) == ("remove agent-channel -s user", True)
    assert put_back == f"add-json --scope user agent-channel {json.dumps(OLD)}"


def test_without_the_program_the_person_gets_the_command(tmp_path: Path) -> None:
    client = ClaudeCode(Account(tmp_path, {"HOME": str(tmp_path), "PATH": str(tmp_path)}))
    assert not client.is_found()
    with pytest.raises(CantChange) as refused:
        client.planned_install(WANTED)
    assert f"claude mcp add --scope user agent-channel -- {' '.join(WANTED.words)}" in refused.value.by_hand
    register(tmp_path, OLD)
    with pytest.raises(CantChange) as refused:
        client.planned_removal()
    assert "claude mcp remove agent-channel -s user" in refused.value.by_hand


def test_another_program_under_our_name_is_left_alone(tmp_path: Path) -> None:
    client = claude_that_fails_at(tmp_path, "never")
    register(tmp_path, {"type": "stdio", "command": "/usr/bin/another-program"})
    for plan in (lambda: client.planned_install(WANTED), client.planned_removal):
        with pytest.raises(CantChange, match="another program"):
            plan()


@pytest.mark.parametrize("content", ["", "[", '{"mcpServers": {"agent-channel": {"type": "http", "url": "u"}}}'])
def test_a_state_that_says_no_command_is_said_to_be_unreadable(tmp_path: Path, content: str) -> None:
    client = claude_that_fails_at(tmp_path, "never")
    (tmp_path / ".claude.json").write_text(content)
    with pytest.raises(CantRead, match=r"\.claude\.json"):
        client.registered()


def test_its_configuration_moves_with_its_variable(tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    register(moved, OLD)
    client = ClaudeCode(Account(tmp_path, {"CLAUDE_CONFIG_DIR": str(moved)}))
    assert client.registered() == Registration("/old/bin/agent-channel-mcp")
