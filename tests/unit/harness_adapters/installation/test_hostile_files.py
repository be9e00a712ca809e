"""A configuration that is no text of its kind, or no file at all: said with its name, in time, and left as it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_adapters.installation import claude_plugin, permission_rule
from harness_adapters.installation.claude_code import ClaudeCode
from harness_adapters.installation.client import Account, CantChange, CantRead
from harness_adapters.installation.clients import CLIENTS
from harness_adapters.installation.codex import TEXT_CHARACTERS_MAX
from harness_adapters.installation.file_change import read
from harness_adapters.installation.skill import planned_copy, skill_files
from tests.unit.harness_adapters.installation.golden import WANTED, account_at

NESTED_TOO_DEEP = 100_000

Plan = Callable[[Account], object]

READERS: dict[str, tuple[str, Plan]] = {
    "claude-code": (".claude.json", lambda account: ClaudeCode(account).planned_install(WANTED)),
    "codex": (".codex/config.toml", lambda account: CLIENTS["codex"](account).planned_install(WANTED)),
    "cursor": (".cursor/mcp.json", lambda account: CLIENTS["cursor"](account).planned_install(WANTED)),
    "opencode": (
        ".config/opencode/opencode.json",
        lambda account: CLIENTS["opencode"](account).planned_install(WANTED),
    ),
    "rule": (".claude/settings.json", lambda account: permission_rule.planned_rule(account, None)),
    "plugin": (
        ".claude/skills/agent-channel/.mcp.json",
        lambda account: claude_plugin.planned_install(account, WANTED),
    ),
    "skill": (
        ".claude/skills/agent-channel/SKILL.md",
        lambda account: planned_copy(skill_files(account)["claude-code"]),
    ),
}
"""What is read, and a plan that reads it."""


def put(account: Account, place: str) -> Path:
    path = account.home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.fault("F47")
@pytest.mark.timeout(10)
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, make_endless], ids=["FIFO", "folder", "device"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_ordinary_file_is_said_and_not_waited_for(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    place, plan = READERS[name]
    path = put(account_at(tmp_path), place)
    make(path)
    with pytest.raises((CantRead, CantChange), match="it is no ordinary file") as refused:
        plan(account_at(tmp_path))
    assert str(path) in str(refused.value)


@pytest.mark.fault("F47")
@pytest.mark.parametrize("opening", ["[", '{"agent-channel":', "agent-channel = ["])
@pytest.mark.parametrize("name", ["claude-code", "codex", "cursor", "opencode", "rule"])
def test_brackets_without_end_are_refused_with_the_file_s_name(tmp_path: Path, name: str, opening: str) -> None:
    place, plan = READERS[name]
    path = put(account_at(tmp_path), place)
    path.write_text(opening * NESTED_TOO_DEEP)
    with pytest.raises((CantRead, CantChange)) as refused:
        plan(account_at(tmp_path))
    assert str(path) in str(refused.value)


@pytest.mark.fault("F47")
@pytest.mark.timeout(10)
def test_a_configuration_of_codex_that_would_take_minutes_is_left_to_the_person(tmp_path: Path) -> None:
    place, plan = READERS["codex"]
    path = put(account_at(tmp_path), place)
    path.write_text("[a]\n# our user's notes\n" * TEXT_CHARACTERS_MAX)
    with pytest.raises(CantChange, match="longer than") as refused:
        plan(account_at(tmp_path))
    assert "[mcp_servers.agent-channel]" in refused.value.by_hand


def test_what_was_read_leaves_no_file_open(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    (tmp_path / "file").write_bytes(b"whole")
    assert read(tmp_path / "file") == b"whole"
    assert read(tmp_path / "none") is None
    with pytest.raises(OSError, match="no ordinary file"):
        read(tmp_path)
    assert len(list(Path("/dev/fd").iterdir())) == before
