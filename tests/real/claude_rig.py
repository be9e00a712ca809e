"""The real Claude Code in a test: a world of its own, offline, with a scripted model behind it.

    rules = [Rule(shown("hello"), arm_monitor("/bin/sh lines.sh"))]
    async with offline_claude(*rules, allow=["Bash(/bin/sh *)"]) as (api, world):
        async with world.stream_session() as session:
            await session.say("hello")
            request = await api.wait_for(shown("first line"))

Three ways to run it: `stream_session` (print mode that stays open, so that Monitor's events wake it),
`terminal_session` (the terminal program in a pseudo-terminal) and `run_once` (print mode, one prompt).
Every process that lives in the world is ended with it, orphans of Monitor too.
"""

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from fakes.messages_api import MessagesApi
from fakes.messages_script import Reply, Rule, call, result_of, shown
from fakes.messages_shown import ModelRequest
from fakes.recorder import Recorder
from tests.real.binaries import claude_binary
from tests.real.terminal import ENTER, Terminal, terminal

API_KEY = "sk-ant-api03-" + "0" * 40
KEY_ENDING = API_KEY[-20:]  # how ~/.claude.json names a key that its user approved
STREAM_JSON = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
POLL_S = 0.02  # Claude Code's files have no bell of ours: they are looked at this often
LINE_BYTES_MAX = 16_000_000  # one line of stream-json: a tool result is at most a few MB
EXIT_S = 5  # Claude Code gives MCP servers 0.5 s and Monitors 1.6 s when it ends
WITHIN_S = 40  # a start takes 1 s on a quiet machine; several run side by side on a busy one
MONITOR_TIMEOUT_MS = 1_800_000  # the most that Claude Code grants
IDLE = ("idle", "shell")  # the registry's words; "shell": idle in the terminal, while a Monitor or shell runs
OUTPUT_SHOWN = 2_000  # characters of a terminal's output: about the last screen
PROMPT_MARK = "❯"  # the terminal program writes it in front of the prompt, once it reads keys


def arm_monitor(command: str, *, description: str = "room", timeout_ms: int = MONITOR_TIMEOUT_MS) -> Reply:
    """The model starts `command` in Monitor."""
    return call("Monitor", {"description": description, "timeout_ms": timeout_ms, "command": command})


def joining(prompt: str, tool: str, arguments: Mapping[str, Any]) -> list[Rule]:
    """A prompt that contains `prompt` makes the model call `tool`, then run the `command` of its result."""

    def arm_what_it_answered(request: ModelRequest) -> Reply:
        answer = request.newest_results[-1]
        assert not answer.is_error, answer.text
        return arm_monitor(json.loads(answer.text)["command"])

    return [Rule(shown(prompt), call(tool, arguments)), Rule(result_of(tool), arm_what_it_answered)]


@dataclass(frozen=True)
class ClaudeWorld:
    """A temporary HOME, working folder and environment for real Claude Code processes."""

    binary: Path
    root: Path
    base_url: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        base_url: str,
        *,
        allow: Sequence[str] = (),
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> AsyncIterator["ClaudeWorld"]:
        """A world whose model is at `base_url`; leaving it ends its processes and removes its files.

        `allow` are permission rules; `mcp_servers` as in an MCP configuration file (command, args, env), without
        them those count that `run_claude("mcp", "add", ...)` added;
        `settings` are added to settings.json and `variables` to the environment. Skips the test where the
        binary is not installed.
        """
        binary = claude_binary()
        # Not pytest's tmp_path: the path of a unix socket below it must stay under 108 bytes.
        root = Path(tempfile.mkdtemp(prefix="ac-")).resolve()
        world = cls(binary, root, base_url, variables or {})
        try:
            world._write_files(allow, mcp_servers or {}, settings or {})
            yield world
        finally:
            with anyio.CancelScope(shield=True):
                await world.end_processes()
            shutil.rmtree(root, ignore_errors=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        """The folder that the sessions run in."""
        return self.root / "work"

    @property
    def config(self) -> Path:
        """Claude Code's own folder: registry, transcripts, settings."""
        return Path(self.variables.get("CLAUDE_CONFIG_DIR", self.home / ".claude"))

    @property
    def environment(self) -> dict[str, str]:
        """All that a process of this world has in its environment."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "ANTHROPIC_API_KEY": API_KEY,
            "ANTHROPIC_BASE_URL": self.base_url,
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            # Print mode then waits for the MCP servers before its first request: no race in a script.
            "MCP_CONNECTION_NONBLOCKING": "0",
            **self.variables,
        }

    def command(self, *arguments: str) -> list[str]:
        """The command line of Claude Code, with the MCP servers that the world was opened with."""
        servers = ("--mcp-config", str(self._mcp_config)) if self._mcp_config.exists() else ()
        return [str(self.binary), *servers, *arguments]

    @property
    def _mcp_config(self) -> Path:
        return self.root / "mcp.json"

    @asynccontextmanager
    async def stream_session(self, *arguments: str) -> AsyncIterator["StreamSession"]:
        """A session in print mode that takes prompts until it is closed; entered when it is ready for one."""
        process = await anyio.open_process(
            self.command(*STREAM_JSON, *arguments), cwd=self.work, env=self.environment, stderr=None
        )
        async with process, anyio.create_task_group() as tasks:
            session = StreamSession(self, process.pid, process)
            tasks.start_soon(session.read_output)
            await session.wait_until_idle()
            yield session
            await session.end()
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def terminal_session(self, *arguments: str) -> AsyncIterator["TerminalSession"]:
        """A session of the terminal program; it is entered when it is ready for a prompt."""
        command = self.command(*arguments)
        async with terminal(command, cwd=self.work, env=self.environment) as running:
            session = TerminalSession(self, running.process.pid, running)
            try:
                await running.wait_for_output(PROMPT_MARK)  # what is typed before is thrown away
                await session.wait_until_idle()
                yield session
                await session.end()
            except BaseException:
                print(running.output()[-OUTPUT_SHOWN:])  # pytest shows it with the failure
                raise

    async def run_once(self, prompt: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """One prompt in print mode, to its end."""
        command = self.command("-p", prompt, *arguments)
        return await anyio.run_process(command, cwd=self.work, env=self.environment, check=False)

    async def run_claude(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """A command such as `mcp add ...`, exactly as given."""
        command = [str(self.binary), *arguments]
        return await anyio.run_process(command, cwd=self.work, env=self.environment, check=False)

    def processes(self) -> list[psutil.Process]:
        """Every live process of this world, whoever its parent is now: those with its HOME."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    async def end_processes(self) -> None:
        """Kill what is left, by pid, until nothing is (one that dies may have just started another)."""
        with anyio.move_on_after(EXIT_S):
            while left := self.processes():
                for process in left:
                    try:
                        process.kill()
                    except psutil.NoSuchProcess:
                        pass
                await anyio.sleep(POLL_S)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME") == str(self.home) and process.status() != "zombie"
        except psutil.Error:
            return False

    def _write_files(
        self, allow: Sequence[str], servers: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        for folder in (self.config, self.work, self.root / "tmp"):
            folder.mkdir(parents=True)
        if servers:
            _write_json(self._mcp_config, {"mcpServers": servers})
        _write_json(self.config / "settings.json", {"permissions": {"allow": list(allow)}, **settings})
        moved = "CLAUDE_CONFIG_DIR" in self.variables
        _write_json(
            (self.config if moved else self.home) / ".claude.json",
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": [KEY_ENDING], "rejected": []},
                "projects": {str(self.work): {"hasTrustDialogAccepted": True}},
            },
        )


@dataclass(frozen=True)
class Session:
    """One Claude Code process and the files it keeps about itself."""

    world: ClaudeWorld
    pid: int

    @property
    def registry_path(self) -> Path:
        """Claude Code's own note on this process; it removes it at a clean exit."""
        return self.world.config / "sessions" / f"{self.pid}.json"

    def registry(self) -> dict[str, Any]:
        """The session registry file: `sessionId`, `status`, `procStart` (as in /proc) ...; {} without one."""
        try:
            registry: dict[str, Any] = json.loads(self.registry_path.read_bytes())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return registry

    @property
    def transcript_path(self) -> Path:
        """The transcript of the session that runs in the process now; another one after /clear.

        Raises: FileNotFoundError before the first prompt and after the end of the process.
        """
        session_id = self.registry().get("sessionId")
        # The folder's name is made from the session's folder, by rules that are Claude Code's own.
        for path in self.world.config.glob(f"projects/*/{session_id}.jsonl"):
            return path
        raise FileNotFoundError(f"process {self.pid} has no transcript (session {session_id})")

    def transcript(self) -> list[dict[str, Any]]:
        """The records of the transcript so far, [] without one; a line that is being written is left out."""
        try:
            *lines, _ = self.transcript_path.read_text("utf-8").split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    async def wait_until_idle(self) -> None:
        """Return when the registry file says that no turn runs."""
        await look_until(lambda: self.registry().get("status") in IDLE)

    async def wait_for_record(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first record of the transcript that matches."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found.extend(filter(matches, self.transcript()))
            return bool(found)

        await look_until(look)
        return found[0]

    def kill(self) -> None:
        """SIGKILL to Claude Code alone: what it started is left to itself."""
        psutil.Process(self.pid).kill()


@dataclass(frozen=True)
class StreamSession(Session):
    """Print mode with stream-json on both sides. `events` records the lines that it writes."""

    process: Process
    events: Recorder[dict[str, Any]] = field(default_factory=Recorder)

    async def say(self, text: str) -> None:
        """Send one prompt."""
        await self._write({"type": "user", "message": {"role": "user", "content": text}})

    async def reconnect(self, server: str) -> None:
        """Have an MCP server started that Claude Code has given up, as `/mcp reconnect` does in the terminal."""
        request = {"subtype": "mcp_reconnect", "serverName": server}
        await self._write({"type": "control_request", "request_id": f"reconnect {server}", "request": request})

    async def _write(self, line: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps(line).encode() + b"\n")

    async def read_output(self) -> None:
        """Record the events until the process closes its stdout."""
        assert self.process.stdout is not None
        lines = BufferedByteReceiveStream(self.process.stdout)
        try:
            while True:
                self.events.add(json.loads(await lines.receive_until(b"\n", LINE_BYTES_MAX)))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            return

    async def close_input(self) -> None:
        """Close its stdin: it ends once no Monitor runs any more."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and wait; the exit code."""
        return await _end(self.process, number)


@dataclass(frozen=True)
class TerminalSession(Session):
    """The terminal program. What stands on the screen is in `terminal`."""

    terminal: Terminal

    async def say(self, text: str) -> None:
        """Type one prompt, a short line."""
        await self.terminal.submit(text)

    async def clear(self) -> None:
        """Begin a new conversation in the same process."""
        await self._command("/clear")

    async def quit(self) -> int:
        """Leave as a user does, and stop what runs in the background; the exit code."""
        await self._command("/exit")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._confirm_that_tasks_stop)
            code = await self.terminal.process.wait()
            tasks.cancel_scope.cancel()
        return code

    async def _command(self, command: str) -> None:
        self.terminal.press(command)
        await self.terminal.wait_for_output(command)
        self.terminal.press(ENTER)

    async def _confirm_that_tasks_stop(self) -> None:
        """Answer the dialog that comes where a Monitor runs: its first choice stops it."""
        await self.terminal.wait_for_output("1. Exit and stop tasks")
        self.terminal.press(ENTER)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and wait; the exit code."""
        return await _end(self.terminal.process, number)


@asynccontextmanager
async def offline_claude(
    *rules: Rule, within_s: float = WITHIN_S, **options: Any
) -> AsyncIterator[tuple[MessagesApi, ClaudeWorld]]:
    """A scripted model and a world that talks to it; `options` are those of `ClaudeWorld.open`.

    Raises: TimeoutError where the block takes longer than `within_s`.
    """
    api = MessagesApi(rules)
    with anyio.fail_after(within_s):
        async with api.serve() as url, ClaudeWorld.open(url, **options) as world:
            yield api, world


async def look_until(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds. It looks without end: bound it with `anyio.fail_after`."""
    while not condition():  # noqa: ASYNC110 - another program's files ring no event of ours
        await anyio.sleep(POLL_S)


async def _end(process: Process, number: signal.Signals) -> int:
    if process.returncode is None:
        process.send_signal(number)
    with anyio.move_on_after(EXIT_S):
        return await process.wait()
    process.kill()
    return await process.wait()


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1), "utf-8")
