"""install and uninstall with the real Claude Code and the real Codex, each in a home folder of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.agent_channel import monitor_command, server_command
from tests.real.binaries import claude_binary, codex_binary
from tests.unit.harness_adapters.installation.golden import WANTED, Case, cases

pytestmark = [pytest.mark.real, pytest.mark.timeout(180), pytest.mark.fault("F47")]

RUN_S = 60
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class Home:
    """A user's home, with the real programs on PATH; a project in it has folders with the names of ours."""

    def __init__(self, root: Path) -> None:
        self.path = root / "home"
        self.project = self.path / "project"
        self.codex_config = self.path / ".codex" / "config.toml"
        programs = self.path / "bin"
        for folder in (self.project / "channel", self.project / "harness_adapters", self.codex_config.parent, programs):
            folder.mkdir(parents=True)
        for decoy in ("channel", "harness_adapters"):
            (self.project / decoy / "__init__.py").write_text("raise SystemExit('not this one')\n")
        (programs / "claude").symlink_to(claude_binary())
        (programs / "codex").symlink_to(codex_binary())
        self.environment = {
            "PATH": f"{programs}:{SYSTEM_PATH}",
            "HOME": str(self.path),
            "TMPDIR": str(root),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def run(self, *command: str) -> str:
        """Its standard output; it must succeed. In the project, as a harness starts its servers."""
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def agent_channel(self, *arguments: str) -> str:
        return self.run(sys.executable, "-I", "-m", "harness_adapters.cli", *arguments)

    def codex_servers(self) -> dict[str, dict[str, object]]:
        listed = json.loads(self.run("codex", "mcp", "list", "--json"))
        return {each["name"]: each["transport"] for each in listed}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.fault("F48")
def test_both_harnesses_list_the_server_after_an_install_and_not_after_an_uninstall(home: Home) -> None:
    """Through a rewrite of the file by Codex itself, and for Claude Code connected from a folder with our names."""
    home.codex_config.write_bytes(Case("codex", "comments").content("before"))
    command, *args = server_command()

    home.agent_channel("install", "--yes", "--skill", "--allow-streamer")
    assert home.codex_servers()["agent-channel"] | {"env": None} == {
        "type": "stdio",
        "command": command,
        "args": args,
        "env": None,
        "env_vars": ["CODEX_HOME"],
        "cwd": None,
    }
    assert f"agent-channel: {' '.join([command, *args])} - ✔ Connected" in home.run("claude", "mcp", "list")
    settings = json.loads((home.path / ".claude" / "settings.json").read_bytes())
    assert settings == {"permissions": {"allow": [f"Bash({monitor_command()})"]}}
    assert "- agent-channel: " in json.dumps(json.loads(home.run("codex", "debug", "prompt-input", "hello")))

    home.run("codex", "mcp", "add", "other", "--", "/bin/echo", "hello")
    again = home.agent_channel("install", "--yes", "--skill", "--allow-streamer", "--json")
    assert {step["state"] for step in json.loads(again)["steps"]} == {"unchanged"}

    rewritten = home.codex_config.read_text().splitlines()
    home.agent_channel("uninstall", "--yes")
    assert set(home.codex_servers()) == {"docs", "other"}
    assert "No MCP servers configured" in home.run("claude", "mcp", "list")
    assert not (home.path / ".claude" / "settings.json").exists()
    left = home.codex_config.read_text().splitlines()
    lost = [line.split(" = ")[0] for line in rewritten if line not in left]
    assert lost == ["[mcp_servers.agent-channel]", "command", "args", "env_vars"]
    assert [line for line in rewritten if line in left and line] == [line for line in left if line]


def test_what_a_user_set_in_our_registration_outlives_an_upgrade_in_claude_code(home: Home) -> None:
    entry = {"type": "stdio", "command": "/old/bin/agent-channel-mcp", "env": {"LANG": "C.UTF-8"}, "timeout": 90_000}
    home.run("claude", "mcp", "add-json", "--scope", "user", "agent-channel", json.dumps(entry))
    command, *args = server_command(home.path / "a channel.db")
    said = home.agent_channel("--db", str(home.path / "a channel.db"), "install", "--yes", "--client", "claude-code")
    assert "✔ Connected" in said
    state = json.loads((home.path / ".claude.json").read_bytes())
    assert state["mcpServers"]["agent-channel"] == entry | {"command": command, "args": args}


@pytest.mark.parametrize("case", cases("codex"), ids=str)
def test_codex_reads_what_an_install_leaves(tmp_path: Path, case: Case) -> None:
    """Each golden configuration, through Codex's own parser."""
    (tmp_path / "config.toml").write_bytes(case.content("installed"))
    environment = {"PATH": SYSTEM_PATH, "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    listed = subprocess.run(
        [codex_binary(), "mcp", "list", "--json"], env=environment, check=True, capture_output=True, timeout=RUN_S
    ).stdout
    (ours,) = [each for each in json.loads(listed) if each["name"] == "agent-channel"]
    assert (ours["transport"]["command"], *ours["transport"]["args"]) == WANTED.words
    assert "CODEX_HOME" in ours["transport"]["env_vars"]
