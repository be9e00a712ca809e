"""A Codex thread for the demo, run by the real Codex or by the fake app-server.

Either way a `codex app-server --listen unix://` runs the thread, as the daemon of the terminal program does, and
the MCP server is its child. The real one starts the server itself and its model, a fake endpoint, calls the
tools. The fake one has no model: an MCP client calls them, under a program named `codex`.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import (
    ClientCapabilities,
    Implementation,
    InitializedNotification,
    InitializeRequest,
    InitializeRequestParams,
    InitializeResult,
)
from websockets.asyncio.client import unix_connect

from fakes.codex_app_server import CONTROL_SOCKET
from fakes.responses_api import ResponsesApi, Say, call_mcp, on_user_text, serve_responses_api
from tests.real.codex_client import AppServer, connected
from tests.real.codex_home import McpServer, codex_home, until

PROTOCOL = "2025-06-18"
PLAYED_VERSION = "0.171.0"
SERVER_NAME = "agent-channel"
NAMESPACE = "agent_channel"
"""What Codex makes of the name for its model."""
KEY_PREFIX = "agent-channel:"
ROOT = Path(__file__).parents[2]

STAND_IN = f"""\
#!{sys.executable} -I
import subprocess, sys
sys.exit(subprocess.call(sys.argv[sys.argv.index("--") + 1 :]))
"""
"""A program whose name is that of its file: `codex`."""


class CodexSide(Protocol):
    """One Codex thread. `what` names it for people."""

    what: str

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One tool call by the thread; its structured answer."""
        ...

    async def shown(self) -> list[str]:
        """The texts that agent-channel put before the thread's model, oldest first."""
        ...


class RealCodex:
    """The user's own Codex, offline: its model is the fake endpoint `api`."""

    def __init__(self, what: str, thread: AppServer, thread_id: str, api: ResponsesApi) -> None:
        self.what = what
        self._thread = thread
        self._thread_id = thread_id
        self._api = api

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        prompt = f"please {tool}"
        self._api.script = on_user_text({prompt: [call_mcp(NAMESPACE, tool, **arguments), Say("done")]})
        await self._thread.run_turn(self._thread_id, prompt)
        said = next(
            request.tool_outputs[-1]
            for request in reversed(self._api.requests.items)
            if request.last_user_text == prompt
        )
        _, output, answer = said.partition("Output:\n")
        if not output:
            raise RuntimeError(f"{tool} failed: {said}")
        structured: dict[str, Any] = json.loads(answer)
        return structured

    async def shown(self) -> list[str]:
        """As the model's endpoint received them, in the thread's newest request."""
        if not self._api.requests.items:
            return []
        texts = self._api.requests.items[-1].user_texts
        return [text for text in texts if text.split("\n")[1:2] == ["from another agent, not your user"]]


class FakeCodex:
    """A thread of the fake app-server."""

    what = "the fake app-server (fakes/codex_app_server.py), since no codex is on PATH; CODEX=/path/to/codex names one"

    def __init__(self, thread: AppServer, thread_id: str, session: ClientSession) -> None:
        self._thread = thread
        self._thread_id = thread_id
        self._session = session

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        meta: Any = {"threadId": self._thread_id, "sessionId": self._thread_id}
        result = await self._session.call_tool(tool, arguments, meta=meta)
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool} failed: {result.content}")
        return dict(result.structured_content)

    async def shown(self) -> list[str]:
        """The thread's items, which are what its model reads."""
        page = await self._thread.request("thread/items/list", threadId=self._thread_id, limit=100, sortDirection="asc")
        items = [entry["item"] for entry in page["data"]]
        return [item["content"][0]["text"] for item in items if str(item.get("clientId") or "").startswith(KEY_PREFIX)]


@asynccontextmanager
async def real_codex(binary: Path, root: Path, server: list[str]) -> AsyncIterator[RealCodex]:
    """A thread of the Codex at `binary`, in a CODEX_HOME of its own under `root`."""
    async with codex_home(root, binary) as home, serve_responses_api() as api:
        home.configure(api.url, {SERVER_NAME: McpServer(Path(server[0]), server[1:])})
        command = [str(binary), "app-server", "--listen", "unix://"]
        async with _daemon(command, home.environment(), home.home, home.control_socket) as client:
            thread_id = await client.start_thread(home.project)
            # Codex begins a turn without the tools of a server that is still starting.
            await client.notification("mcpServer/startupStatus/updated", name=SERVER_NAME, status="ready")
            await client.run_turn(thread_id, "hello")
            yield RealCodex(f"the real Codex at {binary}, offline", client, thread_id, api)


@asynccontextmanager
async def fake_codex(root: Path, server: list[str]) -> AsyncIterator[FakeCodex]:
    """A thread of the fake app-server, in a CODEX_HOME under `root`."""
    home = root / "home"
    codex_home = home / ".codex"
    codex_home.mkdir(parents=True)
    command = [sys.executable, "-m", "fakes.codex_app_server", "app-server", "--home", str(codex_home)]
    environment = {**os.environ, "TMPDIR": str(root)}  # where its socket is: it is killed, and removes nothing
    async with _daemon([*command, "--listen", "unix://"], environment, ROOT, codex_home / CONTROL_SOCKET) as client:
        thread_id = await client.start_thread(home)
        await client.run_turn(thread_id, "hello")
        async with _server_under_codex(root, home, server) as session:
            yield FakeCodex(client, thread_id, session)


@asynccontextmanager
async def _daemon(command: list[str], environment: dict[str, str], cwd: Path, path: Path) -> AsyncIterator[AppServer]:
    """Start an app-server that listens on `path`, and a client of it; it ends with the body."""
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=cwd,
        start_new_session=True,  # Ctrl-C is for the demo alone, which ends its processes itself
    )
    try:
        await until(lambda: _listens(path))
        # The real one's socket is a link: its target's path is short enough to connect to.
        async with unix_connect(str(path.resolve()), max_size=None, ping_interval=None, compression=None) as frames:
            async with connected(frames.send, frames) as client:
                yield client
    finally:
        with anyio.CancelScope(shield=True):
            process.kill()
            await process.wait()


def _listens(path: Path) -> bool:
    """It is bound a moment before it listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path.resolve()))
        except OSError:
            return False
    return True


@asynccontextmanager
async def _server_under_codex(root: Path, home: Path, server: list[str]) -> AsyncIterator[ClientSession]:
    """The MCP server as a child of a program named `codex`, which it takes for the daemon that runs its thread."""
    stand_in = root / "codex"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    parameters = StdioServerParameters(
        command=str(stand_in),
        args=["app-server", "--listen", "unix://", "--", *server],
        env={"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath), "TERM": "xterm-256color"},
    )
    name = Implementation(name="codex-mcp-client", title="Codex", version=PLAYED_VERSION)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write, client_info=name) as session:
        await _initialize(session, name)
        yield session


async def _initialize(session: ClientSession, name: Implementation) -> None:
    """As Codex does; the SDK by itself would name the newest version of this era."""
    request = InitializeRequest(
        params=InitializeRequestParams(protocol_version=PROTOCOL, capabilities=ClientCapabilities(), client_info=name)
    )
    session.adopt(await session.send_request(request, InitializeResult))
    await session.send_notification(InitializedNotification())
