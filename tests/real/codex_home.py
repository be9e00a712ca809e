"""A HOME and CODEX_HOME of one test's own: configuration, environment, and the end of all that ran in it."""

import fcntl
import json
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil

from tests.real.binaries import codex_binary

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
POLL_S = 0.02
ENDING_S = 2  # what a process gets between SIGTERM and SIGKILL
HOOK_TIMEOUT_S = 60
PROBE_SERVER = Path(__file__).parent / "probe_mcp_server.py"


@dataclass(frozen=True)
class McpServer:
    """One `[mcp_servers.NAME]` table; `settings` are further keys of it, such as `env_vars`."""

    command: Path
    args: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class CodexHome:
    """The folders and the configuration. Make it with `codex_home`, which also ends what ran in it."""

    def __init__(self, root: Path, binary: Path | None = None) -> None:
        self.binary = binary or codex_binary()
        self.home = root / "home"
        self.codex_home = self.home / ".codex"
        self.project = self.home / "project"
        self.temporary = root / "tmp"  # beside HOME: Codex refuses helper binaries under TMPDIR
        self.probe_log = root / "probe.jsonl"
        for folder in (self.codex_home, self.project, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """The whole environment of a Codex process: nothing of the test's own leaks in."""
        return {
            "PATH": SYSTEM_PATH,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "TERM": "xterm-256color",
            "FAKE_KEY": "no-secret",
        }

    def probe(self, **settings: Any) -> McpServer:
        """The probe server of this folder, to register; it writes to `probe_log`."""
        return McpServer(Path(sys.executable), ["-I", str(PROBE_SERVER), str(self.probe_log)], settings)

    def probe_events(self, event: str) -> list[dict[str, Any]]:
        """What the probe servers wrote down so far under this name (see probe_mcp_server.py)."""
        if not self.probe_log.exists():
            return []
        lines = self.probe_log.read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]

    def configure(
        self,
        model_url: str,
        servers: Mapping[str, McpServer] | None = None,
        *,
        approval_policy: str = "never",
        sandbox_mode: str = "workspace-write",
        prompt_hook: str | None = None,
    ) -> None:
        """Write config.toml: the model is the fake at `model_url`, the project is trusted.

        `prompt_hook` is the shell command of a `UserPromptSubmit` hook; Codex runs it only once it is
        trusted (`AppServer.trust_hooks`).
        """
        tables: list[tuple[str, Mapping[str, Any]]] = [
            ("model_providers.fake", _provider(model_url)),
            ("analytics", {"enabled": False}),
            ("features", {"plugins": False}),
            (f"projects.{json.dumps(str(self.project))}", {"trust_level": "trusted"}),
        ]
        for name, server in (servers or {}).items():
            command = {"command": str(server.command), "args": list(server.args)}
            tables.append((f"mcp_servers.{name}", {**command, **server.settings}))
        general = {
            "model": "gpt-5.1-codex",
            "model_provider": "fake",
            "approval_policy": approval_policy,
            "sandbox_mode": sandbox_mode,
            "check_for_update_on_startup": False,
        }
        if prompt_hook is not None:
            hook = {"type": "command", "command": prompt_hook, "timeout": HOOK_TIMEOUT_S}
            events = {"UserPromptSubmit": [{"hooks": [hook]}]}
            (self.codex_home / "hooks.json").write_text(json.dumps({"hooks": events}))
        text = _toml(general) + "".join(f"\n[{name}]\n{_toml(values)}" for name, values in tables)
        (self.codex_home / "config.toml").write_text(text)

    @property
    def control_socket(self) -> Path:
        """Where the shared daemon listens, once a plain terminal session has started it.

        It is a link to a short path in /tmp. Connect to its target: the link's own path may be longer than
        a socket's may be.
        """
        return self.codex_home / "app-server-control" / "app-server-control.sock"

    def writer_lock(self, thread_id: str) -> Path:
        """The file that the thread's owner holds locked."""
        return self.codex_home / "thread-writer-locks" / f"{thread_id}.lock"

    def is_owned(self, thread_id: str) -> bool:
        """Whether a live process holds the thread's writer lock. The file may outlive its owner."""
        try:
            with self.writer_lock(thread_id).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def processes(self) -> list[psutil.Process]:
        """Every process that runs in this HOME: Codex's own, the daemon, its updater, MCP servers."""
        return [process for process in psutil.process_iter() if _home_of(process) == str(self.home)]

    async def end_processes(self) -> None:
        """End all of `processes` by their ids, politely first; removes the daemon's socket."""
        socket = self.control_socket.resolve()
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for process in self.processes():
                with suppress(psutil.NoSuchProcess):
                    end(process)
            with anyio.move_on_after(ENDING_S):
                await until(lambda: not self.processes())
                break
        for left_over in (socket, socket.with_suffix(".lock")):
            left_over.unlink(missing_ok=True)


@asynccontextmanager
async def codex_home(root: Path, binary: Path | None = None) -> AsyncGenerator[CodexHome]:
    """A fresh home under `root`; at the end no process of it lives and its large files are gone.

    `binary`: another Codex than the pinned one.
    """
    home = CodexHome(root, binary)
    try:
        yield home
    finally:
        with anyio.CancelScope(shield=True):
            await home.end_processes()
        shutil.rmtree(home.codex_home / "packages", ignore_errors=True)  # the daemon's copy: 424 MB


async def until(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; for what another process changes without telling."""
    while not condition():  # noqa: ASYNC110 (nothing here could set an event)
        await anyio.sleep(POLL_S)


def command_line(process: psutil.Process) -> list[str]:
    """The process's arguments; none if it has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # a zombie too
        return []


def _home_of(process: psutil.Process) -> str | None:
    """The process's HOME; none if it is gone, a zombie or another user's."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get("HOME")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def _provider(model_url: str) -> Mapping[str, Any]:
    """A custom provider that needs no login and never repeats a request by itself."""
    return {
        "name": "fake",
        "base_url": f"{model_url}/v1",
        "wire_api": "responses",
        "env_key": "FAKE_KEY",
        "requires_openai_auth": False,
        "supports_websockets": False,
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }


def _toml(values: Mapping[str, Any]) -> str:
    """Keys and values as TOML; JSON's strings, numbers, booleans and arrays of them are TOML's too."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items())


def _toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml_value(member)}" for key, member in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
