"""The two app-servers that the contract is for: the fake, and the real Codex with a fake model behind it.

Both understand the same texts: a turn with `[[hang]]` in it runs until it is interrupted or steered.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from fakes.codex_store import CodexHome as FakeHome
from fakes.codex_thread import HANG_MARK, new_thread
from fakes.faults import set_faults
from fakes.responses_api import CallFunction, Hold, ModelRequest, Reply, ResponsesApi, Say, serve_responses_api
from tests.contract.app_server_client import RawClient, listening, stdio_client
from tests.real.codex_home import CodexHome as RealHome
from tests.real.codex_home import codex_home

HANG = f"{HANG_MARK}]]"
DELEGATE = "give this to a sub-agent"
FAKE_TICK_S = 0.05  # the real one's is 10 s; nothing in the contract depends on it but the time it takes
REFUSING_HOOK = "echo refused >&2; exit 2"  # without a reason on stderr Codex takes the hook for broken


class AppServers(ABC):
    """Server processes of one CODEX_HOME; each client of `client` has one of its own."""

    command: list[str]
    environment: dict[str, str]
    codex_home: Path
    project: Path
    stderr: Path

    def process(self, *arguments: str) -> AbstractAsyncContextManager[RawClient]:
        """A client of a new server process, before `initialize`."""
        return stdio_client([*self.command, *arguments], self.environment, self.stderr)

    @asynccontextmanager
    async def client(self, *, experimental: bool = True) -> AsyncGenerator[RawClient]:
        """An initialized client of a new server process."""
        async with self.process() as client:
            await client.initialize(experimental=experimental)
            yield client

    async def thread(self, **params: object) -> str:
        """A thread with one completed turn that no process has loaded."""
        async with self.client() as owner:
            thread = await owner.new_thread(self.project, **params)
            await owner.close_input()
        return thread

    @asynccontextmanager
    async def socket(self) -> AsyncGenerator[Path]:
        """A server process that listens on a unix socket, as the shared daemon does; the socket's path."""
        path = self.stderr.parent / "control.sock"
        async with self.process("--listen", f"unix://{path}"):
            await listening(path)
            yield path

    @abstractmethod
    async def refuse_prompts(self) -> None:
        """A hook refuses every message to the servers that start from now on."""

    @abstractmethod
    async def sub_agent(self) -> str:
        """The thread of a sub-agent that has done its work; loaded nowhere."""


class FakeServers(AppServers):
    def __init__(self, root: Path) -> None:
        self.codex_home = root / ".codex"
        self.codex_home.mkdir()
        self.project = root
        self.stderr = root / "stderr.log"
        self.home = FakeHome(self.codex_home)
        self.command = [sys.executable, "-m", "fakes.codex_app_server", "--tick", str(FAKE_TICK_S), "app-server"]
        repository = Path(__file__).parents[2]
        self.environment = {"CODEX_HOME": str(self.codex_home), "PYTHONPATH": str(repository)}

    async def refuse_prompts(self) -> None:
        set_faults(self.home, "row_taken:turn#*:block")

    async def sub_agent(self) -> str:
        return new_thread(self.home, parent_id=new_thread(self.home))


class RealServers(AppServers):
    def __init__(self, home: RealHome, model: ResponsesApi) -> None:
        self._home = home
        self._model = model
        home.configure(model.url)
        self.codex_home = home.codex_home
        self.project = home.project
        self.stderr = home.temporary / "stderr.log"
        self.command = [str(home.binary), "app-server", "--disable", "plugins"]
        self.environment = home.environment()

    async def refuse_prompts(self) -> None:
        self._home.configure(self._model.url, prompt_hook=REFUSING_HOOK)
        async with self.client() as client:
            listed = await client.result("hooks/list", {"cwds": [str(self.project)]})
            hooks = [hook for entry in listed["data"] for hook in entry["hooks"]]
            trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
            edit = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
            await client.result("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})

    async def sub_agent(self) -> str:
        async with self.client() as owner:
            root = await owner.new_thread(self.project)
            await owner.turn_completed(await owner.start_turn(root, DELEGATE))
            asked = [request.thread_id for request in self._model.requests.items]
        return next(thread for thread in asked if thread != root)


@asynccontextmanager
async def app_servers(kind: str, root: Path) -> AsyncGenerator[AppServers]:
    """`kind` is fake or real."""
    if kind == "fake":
        servers = FakeServers(root)
        yield servers
        servers.home.close()
        return
    async with codex_home(root) as home, serve_responses_api(_script) as api:
        yield RealServers(home, api)


def _script(request: ModelRequest) -> Reply:
    if HANG in request.last_user_text:
        return Hold()
    match request.last_user_text, request.step:
        case text, 0 if text == DELEGATE:
            return CallFunction("spawn_agent", {"message": "a task"}, "multi_agent_v1")
        case text, 1 if text == DELEGATE:
            agent = json.loads(request.tool_outputs[0])["agent_id"]
            return CallFunction("wait_agent", {"targets": [agent]}, "multi_agent_v1")
    return Say(f"ok: {request.last_user_text[:40]}")
