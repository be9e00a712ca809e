"""Each command of the README is run as it stands there, or it is said here why it can't be.

A command that is neither in COMMANDS nor in RUN_BY_CI fails the first test, so a new one is not forgotten.
"""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from channel.membership import Caller
from fakes.codex_store import CodexHome, text_input
from fakes.codex_thread import new_thread
from harness_adapters.composition import open_channel
from tests.packaging.conftest import ROOT, Installed
from tests.real.binaries import claude_binary, codex_binary

pytestmark = pytest.mark.timeout(240)

RUN_S = 60
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
TEXT = "a text\n\n  of three lines"

RUN_BY_CI = {
    "make demo": "by .ci/run, under this name; here its program is run",
    "uv tool install --compile-bytecode .": "it asks a package index; the wheel that it would build is installed here",
}


def _commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


class NewUser:
    """A user's home with the wheel on PATH; `run` takes a command as the README gives it."""

    def __init__(self, home: Path, installed: Installed) -> None:
        self.home = home
        self.environment = {
            "HOME": str(home),
            "PATH": f"{installed.bin}:{SYSTEM_PATH}",
            "TMPDIR": str(home),
            "DISABLE_AUTOUPDATER": "1",
        }

    def run(self, command: str) -> str:
        """Its standard output; it must succeed."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        assert done.returncode == 0, done.stderr
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
    """The environment of the tests stands for the README's `.venv`."""
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
    ".venv/bin/python -m fakes.monitor_host": check_monitor_host,
    ".venv/bin/python -m fakes.codex_app_server": check_app_server,
    ".venv/bin/python -m fakes.codex_thread": check_codex_thread,
    ".venv/bin/python -m fakes.responses_api": check_model_endpoint,
    ".venv/bin/python -m fakes.messages_api": check_model_endpoint,
}
"""By how a command begins."""


def _check_of(command: str) -> Callable[[NewUser, str], None] | None:
    return next((check for begins, check in COMMANDS.items() if command.startswith(begins)), None)


def test_every_command_of_the_readme_is_run_somewhere() -> None:
    forgotten = [command for command in _commands() if command not in RUN_BY_CI and _check_of(command) is None]
    assert forgotten == []
    begun = [begins for begins in COMMANDS if not any(command.startswith(begins) for command in _commands())]
    assert begun == [], "no such command is in the README any more"


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
def test_a_command_of_the_readme_does_what_it_says(user: NewUser, command: str) -> None:
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
