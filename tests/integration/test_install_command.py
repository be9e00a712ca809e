"""What a person sees of install, status and uninstall, in a home folder with Codex's and Cursor's configuration."""

import json
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.real.terminal import ENTER, Terminal, terminal

pytestmark = pytest.mark.timeout(180)  # several commands in one test, on a busy machine

RUN_S = 30
COMMAND_LINE = [sys.executable, "-I", "-m", "harness_adapters.cli"]

CODEX_CONFIG = '# mine\nmodel = "gpt-5.1-codex"\n'
CURSOR_CONFIG = '{\n  // mine\n  "mcpServers": {}\n}\n'

CLAUDE = f"""\
#!{sys.executable}
import json, pathlib, sys
state, words = pathlib.Path.home() / ".claude.json", sys.argv[1:]
if words == ["--version"]:
    print("2.1.332 (Claude Code)")
elif words[:6] == ["mcp", "add", "--scope", "user", "agent-channel", "--"]:
    state.write_text(json.dumps({{"mcpServers": {{"agent-channel": {{"command": words[6], "args": words[7:]}}}}}}))
elif words[:3] == ["mcp", "get", "agent-channel"]:
    print("  Status: ✔ Connected")
elif words[:2] == ["mcp", "remove"]:
    state.unlink()
"""
"""In the place of Claude Code: it has a version, and keeps what is added."""


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.codex_config = path / ".codex" / "config.toml"
        self.cursor_config = path / ".cursor" / "mcp.json"
        self.settings = path / ".claude" / "settings.json"
        self.programs = path / "bin"
        for folder in (self.codex_config.parent, self.cursor_config.parent, self.programs):
            folder.mkdir()
        self.codex_config.write_text(CODEX_CONFIG)
        self.cursor_config.write_text("{}\n")

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.path), "PATH": f"{self.programs}:/usr/bin:/bin", "TERM": "xterm"}

    def has_claude(self) -> None:
        program = self.programs / "claude"
        program.write_text(CLAUDE)
        program.chmod(0o755)
        self.settings.parent.mkdir()

    def run(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND_LINE, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def steps(self, *arguments: str, status: int = 0) -> dict[str, dict[str, Any]]:
        """By client and what: what --json says."""
        steps = json.loads(self.run(*arguments, "--json", status=status).stdout)["steps"]
        return {f"{step['client']} {step['what']}": step for step in steps}

    def terminal(self, *arguments: str) -> AbstractAsyncContextManager[Terminal]:
        return terminal([*COMMAND_LINE, *arguments], env=self.environment, cwd=self.path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def answered(home: Home, command: str, *keys: str) -> tuple[str, int]:
    """What a terminal shows of a command whose question is answered so, or by Ctrl-C, and its exit status."""
    with anyio.fail_after(RUN_S):
        async with home.terminal(command) as running:
            await running.wait_for_output("[y/N]")
            running.press(*keys)
            # Ctrl-C again where the first came before Python read the keyboard: it is noticed after a key then.
            status = await running.process.wait() if keys else await running.quit()
            return running.output(), status


def test_without_a_terminal_nothing_is_changed_until_it_is_said(home: Home) -> None:
    refused = home.run("install", status=2)
    assert (refused.stdout, home.codex_config.read_text()) == ("", CODEX_CONFIG)
    assert "--dry-run" in refused.stderr
    assert "--yes" in refused.stderr
    shown = home.run("install", "--dry-run")
    assert f"--- {home.codex_config}\n+++ {home.codex_config}\n@@ -1,2 +1,7 @@\n # mine\n" in shown.stdout
    assert f'+command = "{sys.executable}"\n' in shown.stdout
    assert (shown.stderr, home.codex_config.read_text()) == ("", CODEX_CONFIG)


def test_the_clients_that_are_found_are_registered_and_a_second_time_changes_nothing(home: Home) -> None:
    steps = home.steps("--db", str(home.path / "one.db"), "install", "--yes")
    assert {name: step["state"] for name, step in steps.items()} == {"codex server": "done", "cursor server": "done"}
    for config in (home.codex_config, home.cursor_config):
        assert str(home.path / "one.db") in config.read_text()
    again = home.run("--db", str(home.path / "one.db"), "install", "--yes")
    assert again.stdout == (
        f"Codex, server: nothing to change in {home.codex_config}\n"
        f"Cursor, server: nothing to change in {home.cursor_config}\n"
    )
    home.run("uninstall", "--yes")
    assert (home.codex_config.read_text(), home.cursor_config.read_text()) == (CODEX_CONFIG, "{}\n")
    assert home.run("uninstall", "--yes").stdout == ""


def test_a_configuration_with_comments_is_left_and_the_rest_is_done(home: Home) -> None:
    home.cursor_config.write_text(CURSOR_CONFIG)
    done = home.run("install", "--yes", status=1)
    assert "not plain JSON" in done.stderr
    assert f'"command": "{sys.executable}"' in done.stderr
    assert home.cursor_config.read_text() == CURSOR_CONFIG
    assert "[mcp_servers.agent-channel]" in home.codex_config.read_text()
    home.run("uninstall", "--yes")


def test_only_the_named_clients_are_touched(home: Home) -> None:
    steps = home.steps("install", "--yes", "--client", "opencode", "--client", "cursor")
    assert set(steps) == {"cursor server", "opencode server"}
    assert home.codex_config.read_text() == CODEX_CONFIG
    assert "claude-code" in home.run("install", "--client", "vi", status=2).stderr


def test_an_account_without_any_agent_is_told_so(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([*COMMAND_LINE, "install"], env=environment, capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 1
    assert "no coding agent was found" in done.stderr


async def test_on_a_terminal_it_asks_and_takes_anything_but_yes_for_no(home: Home) -> None:
    output, status = await answered(home, "install", "n", ENTER)
    assert (status, home.codex_config.read_text()) == (1, CODEX_CONFIG)
    assert "nothing was changed" in output
    output, status = await answered(home, "install")
    assert (status, home.codex_config.read_text()) == (130, CODEX_CONFIG)
    assert "Traceback" not in output
    output, status = await answered(home, "install", "y", ENTER)
    assert status == 0
    assert "[mcp_servers.agent-channel]" in home.codex_config.read_text()
    assert f"as it was: {home.codex_config}.before-agent-channel" in output


async def test_the_permission_rule_is_never_added_unasked(home: Home) -> None:
    home.has_claude()
    done = home.run("install", "--yes")
    assert "Bash(" not in done.stdout
    assert "agent-channel install --allow-streamer" in done.stderr
    assert not home.settings.exists()
    output, status = await answered(home, "install", "n", ENTER)
    assert (status, home.settings.exists()) == (0, False)
    assert "Bash(" in output
    output, status = await answered(home, "install", "y", ENTER)
    assert status == 0
    (rule,) = json.loads(home.settings.read_bytes())["permissions"]["allow"]
    assert rule in "".join(output.split("\r\n"))
    home.settings.unlink()
    steps = home.steps("install", "--yes", "--allow-streamer")
    assert steps["claude-code permission rule"]["state"] == "done"


def test_status_says_what_each_runs_and_whether_they_meet(home: Home) -> None:
    home.has_claude()
    assert "Nothing is registered" in home.run("status").stdout
    home.run("install", "--yes", "--client", "claude-code", "--client", "codex", "--allow-streamer")
    home.run("--db", str(home.path / "other.db"), "install", "--yes", "--client", "cursor")
    text = home.run("status").stdout
    assert "They use different channels" in text
    assert [line.split() for line in text.splitlines()[1:4]] == [
        ["Claude", "Code", "2.1.332", "(Claude", "Code)", "registered", "this", "installation"],
        ["Codex", "found,", "version", "unknown", "registered", "this", "installation"],
        ["Cursor", "found,", "version", "unknown", "registered", "this", "installation"],
    ]
    as_json = json.loads(home.run("status", "--json").stdout)
    assert not as_json["same_database"]
    by_name = {each["client"]: each for each in as_json["clients"]}
    assert by_name["cursor"]["registered"]["database"] == str(home.path / "other.db")
    assert by_name["codex"]["registered"]["env_vars"] == ["CODEX_HOME"]
    assert (by_name["opencode"]["found"], by_name["opencode"]["registered"]) == (False, None)


def test_status_names_a_command_that_is_gone_and_one_that_is_not_ours(home: Home) -> None:
    home.codex_config.write_text('[mcp_servers.agent-channel]\ncommand = "/gone/agent-channel-mcp"\n')
    home.cursor_config.write_text('{"mcpServers": {"agent-channel": {"command": "/bin/sh"}}}')
    text = home.run("status").stdout
    assert "Codex runs /gone/agent-channel-mcp, which is not there\n" in text
    assert "another program" in text
    home.cursor_config.write_text('{"mcpServers": {"agent-channel": }')
    assert "not plain JSON" in home.run("status").stdout
