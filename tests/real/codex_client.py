"""A raw client of Codex's app-server for tests: JSON lines over a child's stdio or the daemon's socket.

It shares nothing with the product's own client, so that both can't be wrong in the same way.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio

from fakes.recorder import Recorder

CLIENT_NAME = "rig"
UNANSWERED = {"code": -32601, "message": "the rig answers no server request"}

Message = dict[str, Any]


class AppServerError(Exception):
    """The server answered a request with an error; `code`, `message` and `data` as received."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class ConnectionEnded(Exception):
    """The server went away; whether the request of this method had an effect is unknown."""


@dataclass
class _Call:
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Message | None = None


class AppServer:
    """One initialized connection. `notifications` and `server_requests` record what came unasked."""

    def __init__(self, send_line: Callable[[str], Awaitable[None]], process_id: int | None) -> None:
        self._send_line = send_line
        self._ids = count(1)
        self._calls: dict[int, _Call] = {}
        self.process_id = process_id
        self.notifications: Recorder[Message] = Recorder()
        self.server_requests: Recorder[Message] = Recorder()

    async def request(self, method: str, **params: Any) -> Any:
        """Send one request and return its result. Raises: `AppServerError`, `ConnectionEnded`."""
        request_id, call = next(self._ids), _Call()
        self._calls[request_id] = call
        await self._send({"id": request_id, "method": method, "params": params})
        await call.done.wait()
        if call.answer is None:
            raise ConnectionEnded(method)
        if "error" in call.answer:
            raise AppServerError(call.answer["error"])
        return call.answer["result"]

    async def notification(self, method: str, **members: Any) -> Message:
        """The params of the first notification with these params, past or coming."""

        def matches(message: Message) -> bool:
            params = message.get("params") or {}
            return message["method"] == method and members.items() <= params.items()

        return (await self.notifications.wait_for(matches)).get("params") or {}

    async def start_thread(self, cwd: object, **params: Any) -> str:
        """A new thread, owned by this server; its id. `historyMode="legacy"` makes one of the old kind."""
        result = await self.request("thread/start", cwd=str(cwd), **params)
        return str(result["thread"]["id"])

    async def start_turn(self, thread_id: str, text: str) -> str:
        """Start a turn with the user's `text`; its id, before it has run."""
        result = await self.request("turn/start", threadId=thread_id, input=text_input(text))
        return str(result["turn"]["id"])

    async def run_turn(self, thread_id: str, text: str) -> Message:
        """Start a turn and wait until it is completed; the turn as the server then describes it."""
        return await self.turn_completed(await self.start_turn(thread_id, text))

    async def turn_completed(self, turn_id: str) -> Message:
        """The completed turn of this id."""
        done = await self.notifications.wait_for(
            lambda message: message["method"] == "turn/completed" and message["params"]["turn"]["id"] == turn_id
        )
        turn: Message = done["params"]["turn"]
        return turn

    async def queue_add(self, thread_id: str, key: str, text: str) -> str:
        """Add a message to the thread's queue; the queued submission's id."""
        result = await self.request(
            "thread/queue/add", threadId=thread_id, clientUserMessageId=key, input=text_input(text)
        )
        return str(result["queuedSubmission"]["id"])

    async def queued_keys(self, thread_id: str) -> list[str]:
        """The keys of the rows that wait in the thread's queue, in order."""
        result = await self.request("thread/queue/list", threadId=thread_id, limit=100)
        return [row["clientUserMessageId"] for row in result["data"]]

    async def item_keys(self, thread_id: str) -> list[str | None]:
        """The keys of the newest 100 items' user messages, oldest first; null for one without a key."""
        result = await self.request("thread/items/list", threadId=thread_id, limit=100, sortDirection="desc")
        items = [entry["item"] for entry in reversed(result["data"])]
        return [item["clientId"] for item in items if item["type"] == "userMessage"]

    async def trust_hooks(self, cwd: object) -> None:
        """Mark every hook that Codex finds for `cwd` as trusted, as its own review screen does."""
        result = await self.request("hooks/list", cwds=[str(cwd)])
        hooks = [hook for entry in result["data"] for hook in entry["hooks"]]
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        await self.request("config/batchWrite", edits=[edit], reloadUserConfig=True)

    async def _send(self, message: Message) -> None:
        await self._send_line(json.dumps(message))

    async def _serve(self, lines: AsyncIterable[str | bytes]) -> None:
        async for line in lines:
            message = json.loads(line)
            if "method" not in message:
                call = self._calls.pop(message["id"])
                call.answer = message
                call.done.set()
            elif "id" in message:
                self.server_requests.add(message)
                await self._send({"id": message["id"], "error": UNANSWERED})
            else:
                self.notifications.add(message)
        for call in self._calls.values():
            call.done.set()


@asynccontextmanager
async def connected(
    send_line: Callable[[str], Awaitable[None]],
    lines: AsyncIterable[str | bytes],
    process_id: int | None = None,
) -> AsyncGenerator[AppServer]:
    """Shake hands over a transport that is open, and read it until the context is left."""
    server = AppServer(send_line, process_id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve, lines)
        client = {"name": CLIENT_NAME, "version": "1"}
        await server.request("initialize", clientInfo=client, capabilities={"experimentalApi": True})
        await send_line('{"method":"initialized"}')
        yield server
        tasks.cancel_scope.cancel()


def text_input(text: str) -> list[Message]:
    """A user input of one text."""
    return [{"type": "text", "text": text}]
