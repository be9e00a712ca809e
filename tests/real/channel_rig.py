"""The product around a real Codex: our MCP server in its configuration, other sessions, and the channel's file.

The other sessions are clients of the SDK, each over a server process of its own, in the same HOME.
"""

import json
import sqlite3
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation, TextContent

from fakes.recorder import Recorder
from fakes.responses_api import ModelRequest, Reply, ResponsesApi, Say, call_mcp, run_shell, say_ok
from tests.real.codex_home import POLL_S, CodexHome, McpServer, command_line

SERVER = "chan"
ROOM = "hall"
JOIN = "please join"
TURN_DONE = "all done"

Answer = dict[str, Any]


class Refused(Exception):
    """The tool answered with an error; the text as the model would read it."""


class Peer:
    """Another session: it has joined ROOM under `name` once `join` was called."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> Answer:
        """The structured answer of a tool. Raises Refused."""
        result = await self._client.call_tool(tool, arguments)
        if result.is_error:
            raise Refused("".join(part.text for part in result.content if isinstance(part, TextContent)))
        assert result.structured_content is not None
        return result.structured_content

    async def join(self, name: str) -> Answer:
        return await self.call("join", room=ROOM, name=name)

    async def send(self, text: str, to: str) -> Answer:
        return await self.call("send", text=text, to=to)


class ChannelRig:
    """One channel in the HOME of a real Codex. Made by `channel_rig`."""

    def __init__(self, codex: CodexHome, api: ResponsesApi) -> None:
        self.codex = codex
        self.api = api
        self.database = codex.home / "channel" / "channel.db"
        self.turns: dict[str, Sequence[Reply]] = {JOIN: [call_mcp(SERVER, "join", room=ROOM, name="codex")]}
        self._waited: dict[str, int] = {}
        self._answers: Recorder[tuple[str, str]] = Recorder()
        self.server = McpServer(Path(sys.executable), ["-I", "-m", *self._module()])
        codex.configure(api.url, {SERVER: self.server})
        api.script = self.script

    def _module(self) -> list[str]:
        return ["harness_adapters.mcp_server", "--db", str(self.database)]

    def script(self, request: ModelRequest) -> Reply:
        """Carries out `turns`, one tool call a request, once Codex offers the tools.

        Codex begins a turn without the tools of a server that is still starting, and offers them later in it.
        """
        calls = self.turns.get(request.last_user_text)
        if calls is None:
            return say_ok(request)
        if request.step == 0:
            self._waited[request.thread_id] = 0
        if not any(tool.get("name") == f"mcp__{SERVER}" for tool in request.body["tools"]):
            self._waited[request.thread_id] += 1
            return run_shell("sleep 0.2")
        done = request.step - self._waited[request.thread_id]
        if done:
            self._answers.add((request.last_user_text, last_tool_output(request)))
        return calls[done] if done < len(calls) else Say(TURN_DONE)

    @asynccontextmanager
    async def peer(self, name: str) -> AsyncGenerator[Peer]:
        """Another session that has joined under `name`, with a server process of its own."""
        async with self._client() as client:
            peer = Peer(client)
            await peer.join(name)
            yield peer

    def _client(self) -> AbstractAsyncContextManager[Client]:
        server = StdioServerParameters(
            command=sys.executable, args=["-I", "-m", *self._module()], env=self.codex.environment()
        )
        return Client(stdio_client(server), client_info=Implementation(name="tester", version="1"))

    async def tool_answer(self, turn: str) -> str:
        """What the model was shown of the first tool call in the turn that this user text began."""
        _, answer = await self._answers.wait_for(lambda answered: answered[0] == turn)
        return answer

    async def join_answer(self) -> Answer:
        """What `join` answered to the model in the turn JOIN."""
        answer: Answer = json.loads(await self.tool_answer(JOIN))
        return answer

    def answers(self, turn: str) -> list[str]:
        """What the model was shown of each tool call so far in the turns that this user text began."""
        return [answer for text, answer in self._answers.items if text == turn]

    def shown(self, text: str) -> list[ModelRequest]:
        """The requests in which the joined thread's model was shown a delivery of `text` as its newest message."""
        return [request for request in self.api.requests.items if self._shows(request, text)]

    async def until_shown(self, text: str) -> ModelRequest:
        """Wait for the first such request."""
        return await self.api.requests.wait_for(lambda request: self._shows(request, text))

    def _shows(self, request: ModelRequest, text: str) -> bool:
        # The terminal program has a thread of its own invent a title from the first user message.
        return request.last_user_text.endswith(f"\n{text}") and request.thread_id == self.thread_id()

    def delivery(self, message_id: int) -> Answer:
        """The stored row of a message's only delivery."""
        [row] = self._query("SELECT * FROM deliveries WHERE message_id = ?", message_id)
        return dict(row)

    def servers(self) -> list[psutil.Process]:
        """The processes of our MCP server in this HOME."""
        return [process for process in self.codex.processes() if "harness_adapters.mcp_server" in command_line(process)]

    def children(self) -> list[psutil.Process]:
        """The app-servers that our own servers started."""
        return [process for process in self.codex.processes() if "--disable" in command_line(process)]

    def waiter_pid(self) -> int:
        """The process that holds, or held last, the lease of the only Codex thread."""
        [row] = self._query("SELECT process FROM waiters WHERE address LIKE 'codex:%'")
        return int(row["process"].partition(".")[0])

    def thread_id(self) -> str:
        """The only Codex thread that has joined."""
        [row] = self._query("SELECT thread_id FROM connections WHERE thread_id IS NOT NULL")
        return str(row["thread_id"])

    def events(self, message_id: int) -> list[str]:
        """All that happened to a message's only delivery, in order."""
        rows = self._query(
            "SELECT event FROM delivery_events JOIN deliveries USING (delivery_id) WHERE message_id = ?"
            " ORDER BY event_id",
            message_id,
        )
        return [row["event"] for row in rows]

    def deliveries(self, *, to: str) -> list[sqlite3.Row]:
        """All deliveries to a role, each with its message's text."""
        return self._query(
            "SELECT d.message_id, d.state, m.text FROM deliveries d JOIN messages m USING (message_id)"
            " JOIN roles r USING (role_id) WHERE r.name = ? ORDER BY d.message_id",
            to,
        )

    def counts(self) -> dict[str, int]:
        """How many deliveries are in each state."""
        rows = self._query("SELECT state, count(*) AS number FROM deliveries GROUP BY state")
        return {row["state"]: row["number"] for row in rows}

    def _query(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql, parameters).fetchall()

    async def until_delivery(self, message_id: int, **columns: object) -> Answer:
        """Wait until the delivery's row has these values; a text matches if the column begins with it."""
        while True:
            row = self.delivery(message_id)
            if all(_matches(row[name], wanted) for name, wanted in columns.items()):
                return row
            await anyio.sleep(POLL_S)


def last_tool_output(request: ModelRequest) -> str:
    """The newest tool output without the lines that Codex puts above it."""
    return request.tool_outputs[-1].partition("Output:")[2].lstrip() or request.tool_outputs[-1]


def _matches(found: object, wanted: object) -> bool:
    if isinstance(wanted, str) and isinstance(found, str):
        return found.startswith(wanted)
    return found == wanted
