"""Each command of the README and of docs/ is run as it stands there, or it is said here why it can't be.

A command that is neither in COMMANDS nor in RUN_BY_CI fails the first test, so a new one is not forgotten. What stands
in console blocks, with its output, is run by test_page_outputs.py.
"""

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from channel.membership import Caller
from fakes.codex_store import CodexHome, text_input
from fakes.codex_thread import new_thread
from harness_adapters.composition import open_channel
from tests.integration.stuck_deliveries import stuck_deliveries
from tests.integration.test_install_command import Home
from tests.packaging.conftest import ROOT, Installed
from tests.packaging.pages import PAGES, commands
from tests.real.binaries import claude_binary, codex_binary
from tests.real.terminal import ENTER, terminal

pytestmark = pytest.mark.timeout(240)

RUN_S = 60
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
TEXT = "a text\n\n  of three lines"

RUN_BY_CI = {
    "make demo": "by .ci/run, under this name; here its program is run",
    "uv tool install --compile-bytecode .": "it asks a package index; the wheel that it would build is installed here",
    "python3 -m venv ~/.agent-channel-env && ~/.agent-channel-env/bin/pip install .": "as the line above",
    "PATH=~/.agent-channel-env/bin:$PATH": "it says where the commands are; here the environment of the tests says it",
}


def _commands() -> list[str]:
    """Of all pages, each once."""
    return list(dict.fromkeys(command for page in PAGES for command in commands(page)))


class NewUser:
    """A user's home with the wheel on PATH; `run` takes a command as a page gives it."""

    def __init__(self, home: Path, installed: Installed) -> None:
        self.home = home
        self.environment = {
            "HOME": str(home),
            "PATH": f"{installed.bin}:{SYSTEM_PATH}",
            "TMPDIR": str(home),
            "DISABLE_AUTOUPDATER": "1",
        }

    def run(self, command: str, *, status: int = 0, shell: str = "/bin/sh") -> str:
        """Its standard output; it must end so."""
        done = subprocess.run(
            [shell, "-c", command],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    def starts(self, command: str, *says: str, told: str = "") -> None:
        """It goes on running; it is `told` something, its first lines hold what it `says`, and SIGTERM ends it."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with process:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(told)
                process.stdin.flush()
                for line in says:
                    assert line in process.stdout.readline()
            finally:
                process.send_signal(signal.SIGTERM)


@pytest.fixture
def user(tmp_path: Path, installed: Installed) -> NewUser:
    return NewUser(tmp_path, installed)


def _in_a_checkout(command: str) -> str:
    """The environment of the tests stands for the pages' `.venv`."""
    return command.replace(".venv/bin/python", shlex.quote(sys.executable))


def check_claude_registration(user: NewUser, command: str) -> None:
    user.run(f"alias claude={shlex.quote(str(claude_binary()))}\n{command}")
    assert str(_server_command(user)) in user.run(f"{claude_binary()} mcp get agent-channel")


def check_codex_registration(user: NewUser, command: str) -> None:
    (user.home / ".codex").mkdir()
    user.run(f"alias codex={shlex.quote(str(codex_binary()))}\n{command}")
    assert f'command = "{_server_command(user)}"' in (user.home / ".codex" / "config.toml").read_text()


def _server_command(user: NewUser) -> Path:
    return Path(user.environment["PATH"].split(":")[0], "agent-channel-mcp")


def check_permission_rule(user: NewUser, command: str) -> None:
    """It is the very command that `join` returns; none where a shell starts the script, as it does for a long path."""
    program = (
        "from harness_adapters.claude.launch_command import launch_command;"
        "from channel.place import default_database as d; print(launch_command(d(), d(), None))"
    )
    returned = user.run(f"{_server_command(user).with_name('python')} -I -c {shlex.quote(program)}").strip()
    assert user.run(command) == f"Bash({returned})\n"
    started_by_shell = user.home / "bin" / "agent-channel-mcp"
    started_by_shell.parent.mkdir()
    started_by_shell.write_text('#!/bin/sh\n\'\'\'exec\' "/a path/python" "$0" "$@"\n')
    started_by_shell.chmod(0o700)
    user.environment["PATH"] = f"{started_by_shell.parent}:{user.environment['PATH']}"
    assert user.run(command) == ""


def check_message(user: NewUser, command: str) -> None:
    anyio.run(_send_messages, user.home / ".agent-channel" / "channel.db", 17)
    assert user.run(command) == TEXT


async def _send_messages(database: Path, count: int) -> None:
    async with open_channel(database, durable=False) as channel:
        process = channel.process.to_text()
        for key in ("one", "two"):
            await channel.membership.join(Caller(f"session:{key}", "other", process, process), "hall", key, None)
        for _ in range(count):
            await channel.sending.send("session:one", TEXT, None, None)


def check_install(user: NewUser, command: str) -> None:
    """On a terminal, with yes to each question: Codex, Cursor and what plays Claude Code have the server, and the
    streamer's rule is there."""
    home = Home(user.home)
    home.has_claude()
    user.environment |= {"PATH": f"{home.programs}:{user.environment['PATH']}", "TERM": "xterm"}
    questions = ["Make these changes? [y/N]"]
    if "--allow-streamer" not in command:
        questions.append(f"Add it to {home.settings}? [y/N]")
    assert anyio.run(_answer_yes, user, command, questions) == 0
    for settings in (home.codex_config, home.cursor_config, home.path / ".claude.json"):
        assert "harness_adapters.mcp_server" in settings.read_text()
    assert "harness_adapters.cli monitor)" in home.settings.read_text()
    skill = home.settings.parent / "skills" / "agent-channel"
    assert (skill / "SKILL.md").exists() == ("--skill" in command or "--plugin" in command)
    assert (skill / ".claude-plugin" / "plugin.json").exists() == ("--plugin" in command)


async def _answer_yes(user: NewUser, command: str, questions: Sequence[str]) -> int:
    with anyio.fail_after(RUN_S):
        async with terminal(["/bin/sh", "-c", command], env=user.environment, cwd=user.home) as running:
            for question in questions:
                await running.wait_for_output(question)
                running.press("y", ENTER)
            return await running.process.wait()


def check_lists(user: NewUser, command: str) -> None:
    """It says how it stands in a channel with deliveries that wait."""
    anyio.run(stuck_deliveries, user.home)
    failed = "doctor" in command
    assert "reviewer" in user.run(command, status=1 if failed else 0)


def check_followed(user: NewUser, command: str) -> None:
    anyio.run(stuck_deliveries, user.home)
    user.starts(command, "planner -> builder")


def check_first_message(user: NewUser, command: str) -> None:
    anyio.run(stuck_deliveries, user.home)
    assert user.run(command) == "Start with the parser."


def check_view(user: NewUser, command: str) -> None:
    anyio.run(stuck_deliveries, user.home)
    user.starts(command, "http://127.0.0.1:")


def check_completion(user: NewUser, command: str) -> None:
    """It is a function of the shell then; zsh's own is printed."""
    shows = f"{command}\ndeclare -F _shtab_agent_channel" if command.startswith("eval") else command
    assert "_shtab_agent_channel" in user.run(shows, shell="/bin/bash")


def check_worktree(user: NewUser, command: str) -> None:
    project = user.home / "project"
    author = "-c user.name=me -c user.email=me@localhost"
    user.run(f"git init -q {project} && cd {project} && git {author} commit -q --allow-empty -m first && {command}")
    assert (user.home / "builder" / ".git").exists()


def check_monitor_host(user: NewUser, command: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", _in_a_checkout(command)],
        cwd=ROOT,
        env=user.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )
    assert "<event>hello</event>" in done.stdout


def check_app_server(user: NewUser, command: str) -> None:
    (user.home / "codex-home").mkdir()
    line = '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"me","version":"1"},"capabilities":{}}}\n'
    command = _in_a_checkout(command).replace("./codex-home", str(user.home / "codex-home"))
    user.starts(command, '"id":1', told=line)


def check_codex_thread(user: NewUser, command: str) -> None:
    folder = user.home / "codex-home"
    folder.mkdir()
    home = CodexHome(folder)
    thread_id = new_thread(home)
    home.add_row(thread_id, text_input("hello"), "key")
    home.close()
    user.environment["THREAD"] = thread_id
    user.starts(_in_a_checkout(command).replace("./codex-home", str(folder)), "owned", "ok: hello")


def check_model_endpoint(user: NewUser, command: str) -> None:
    user.starts(_in_a_checkout(command), "http://127.0.0.1:")


COMMANDS: dict[str, Callable[[NewUser, str], None]] = {
    "command -v agent-channel-mcp && claude mcp add": check_claude_registration,
    "command -v agent-channel-mcp && codex mcp add": check_codex_registration,
    "sed -n": check_permission_rule,
    "agent-channel message 17": check_message,
    "agent-channel message 1": check_first_message,
    "agent-channel install": check_install,
    "agent-channel tail": check_followed,
    "agent-channel view": check_view,
    "agent-channel who": check_lists,
    "agent-channel doctor": check_lists,
    'eval "$(agent-channel completion bash)"': check_completion,
    "agent-channel completion zsh": check_completion,
    "git worktree add": check_worktree,
    ".venv/bin/python -m fakes.monitor_host": check_monitor_host,
    ".venv/bin/python -m fakes.codex_app_server": check_app_server,
    ".venv/bin/python -m fakes.codex_thread": check_codex_thread,
    ".venv/bin/python -m fakes.responses_api": check_model_endpoint,
    ".venv/bin/python -m fakes.messages_api": check_model_endpoint,
}
"""By how a command begins; the first that fits."""


def _check_of(command: str) -> Callable[[NewUser, str], None] | None:
    return next((check for begins, check in COMMANDS.items() if command.startswith(begins)), None)


def test_every_command_of_the_pages_is_run_somewhere() -> None:
    forgotten = [command for command in _commands() if command not in RUN_BY_CI and _check_of(command) is None]
    assert forgotten == []
    begun = [begins for begins in COMMANDS if not any(command.startswith(begins) for command in _commands())]
    assert begun == [], "no page has such a command any more"


def _parameters() -> list[object]:
    real = {check_claude_registration, check_codex_registration}
    return [
        pytest.param(
            command, id=command.replace("/", "."), marks=[pytest.mark.real] if _check_of(command) in real else []
        )
        for command in _commands()
        if _check_of(command) is not None
    ]


@pytest.mark.parametrize("command", _parameters())
def test_a_command_of_a_page_does_what_it_says(user: NewUser, command: str) -> None:
    check = _check_of(command)
    assert check is not None
    check(user, command)


def test_the_demo_delivers_everything_exactly_with_the_fake_codex(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": SYSTEM_PATH}
    done = subprocess.run(
        [sys.executable, "-m", "tests.demo"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fakes/codex_app_server.py" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_the_demo_delivers_everything_exactly_with_the_real_codex(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": SYSTEM_PATH}
    command = [sys.executable, "-m", "tests.demo", "--codex", codex_binary()]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"the real Codex at {codex_binary().resolve()}" in done.stdout
