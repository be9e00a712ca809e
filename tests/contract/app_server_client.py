"""A raw client of an app-server for the contract: it sends what it is told and keeps all that comes back.

It shares nothing with the product's client. Errors are values here, since most of the contract is about them.
"""

import json
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from websockets.asyncio.client import unix_connect
from websockets.exceptions import ConnectionClosed

from fakes.recorder import Recorder

LINE_BYTES_MAX = 64 * 1024 * 1024
POLL_S = 0.02  # for what another process does without telling

Json = dict[str, Any]


def text(*texts: str) -> list[Json]:
    """An input of these text parts."""
    return [{"type": "text", "text": each} for each in texts]


class RawClient:
    """One connection. `messages` has every JSON line that came, `junk` every other one.

    `ended` is set when the server closed its side. `process` is None on a socket.
    """

    def __init__(self, send_line: Callable[[str], Awaitable[None]], process: Process | None = None) -> None:
        self.send_line = send_line
        self.process = process
        self.messages: Recorder[Json] = Recorder()
        self.junk: list[str] = []
        self.ended = anyio.Event()
        self._ids = count(1)

    async def send(self, method: str, params: Any = None, **members: Any) -> int:
        """Write one request without waiting; its id. Params of None are left out."""
        request_id = next(self._ids)
        message = {"id": request_id, "method": method, **members}
        await self.send_line(json.dumps(message if params is None else {**message, "params": params}))
        return request_id

    async def answer(self, request_id: object) -> Json:
        """The answer with this id, past or coming, whole."""
        return await self.messages.wait_for(lambda message: "method" not in message and message["id"] == request_id)

    async def ask(self, method: str, params: Any = None) -> Json:
        """Send one request and return its answer, a result or an error."""
        return await self.answer(await self.send(method, params))

    async def result(self, method: str, params: Any = None) -> Any:
        """The result; an error is a failure of the test, with its text."""
        answer = await self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None) -> tuple[int, str]:
        """The code and the text of the error; a result is a failure of the test."""
        answer = await self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"]["message"]

    async def initialize(self, *, experimental: bool = True, name: str = "contract") -> Json:
        params = {
            "clientInfo": {"name": name, "version": "1"},
            "capabilities": {"experimentalApi": experimental},
        }
        result: Json = await self.result("initialize", params)
        await self.send_line('{"method":"initialized"}')
        return result

    async def notification(self, method: str, matches: Callable[[Json], bool] = lambda params: True) -> Json:
        """The params of the first such notification, past or coming."""
        found = await self.messages.wait_for(
            lambda message: message.get("method") == method and matches(message["params"])
        )
        params: Json = found["params"]
        return params

    def notified(self) -> list[str]:
        """The names of the notifications so far, in order."""
        return [message["method"] for message in self.messages.items if "method" in message]

    async def add(self, thread: str, key: str, *texts: str) -> Json:
        """Add a row; its submission as answered."""
        params = {"threadId": thread, "clientUserMessageId": key, "input": text(*texts)}
        result = await self.result("thread/queue/add", params)
        submission: Json = result["queuedSubmission"]
        return submission

    async def queued(self, thread: str) -> list[str]:
        """The keys in the thread's queue, oldest first."""
        page = await self.result("thread/queue/list", {"threadId": thread, "limit": 100})
        return [row["clientUserMessageId"] for row in page["data"]]

    async def said(self, thread: str) -> list[tuple[str | None, str]]:
        """Key and text of every user message among the items (one page), oldest first."""
        page = await self.result("thread/items/list", {"threadId": thread, "limit": 100})
        items = [entry["item"] for entry in page["data"] if entry["item"]["type"] == "userMessage"]
        return [(item["clientId"], "".join(part["text"] for part in item["content"])) for item in items]

    async def wait_said(self, thread: str, *, key: str | None = None, words: str | None = None) -> None:
        """Return once an item has this key, or this text."""
        wanted = (key, words)
        while not any(  # noqa: ASYNC110 - another process says it
            all(each in (None, said) for each, said in zip(wanted, item, strict=True))
            for item in await self.said(thread)
        ):
            await anyio.sleep(POLL_S)

    async def start_turn(self, thread: str, words: str, key: str | None = None) -> str:
        """Start a turn, or steer the running one; the turn's id."""
        params: Json = {"threadId": thread, "input": text(words)}
        if key is not None:
            params["clientUserMessageId"] = key
        result = await self.result("turn/start", params)
        return str(result["turn"]["id"])

    async def turn_completed(self, turn: str) -> Json:
        """The turn as turn/completed describes it."""
        params = await self.notification("turn/completed", lambda params: params["turn"]["id"] == turn)
        ended: Json = params["turn"]
        return ended

    async def new_thread(self, cwd: Path, **params: Any) -> str:
        """A thread of this server with one completed turn: on disk, idle, loaded here."""
        started = await self.result("thread/start", {"cwd": str(cwd), **params})
        thread = str(started["thread"]["id"])
        await self.turn_completed(await self.start_turn(thread, "hello"))
        return thread

    async def close_input(self) -> int:
        """Close the server's stdin and wait for its end; the exit code."""
        assert self.process is not None and self.process.stdin is not None
        await self.process.stdin.aclose()
        return await self.process.wait()

    async def kill(self) -> None:
        """SIGKILL to the server, and wait until its output ended."""
        assert self.process is not None
        self.process.kill()
        await self.ended.wait()

    async def read(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                self.junk.append(line)
            else:
                self.messages.add(message)
        self.ended.set()


@asynccontextmanager
async def stdio_client(command: list[str], environment: Mapping[str, str], stderr: Path) -> AsyncGenerator[RawClient]:
    """Start the server `command` and talk to it over stdio; killed at the end if it still runs."""
    with stderr.open("ab") as stderr_file:
        process = await anyio.open_process(
            command, env=environment, stderr=stderr_file, stdin=subprocess.PIPE, cwd=stderr.parent
        )

    async def send_line(line: str) -> None:
        assert process.stdin is not None
        await process.stdin.send(line.encode() + b"\n")

    try:
        async with anyio.create_task_group() as tasks:
            client = RawClient(send_line, process)
            tasks.start_soon(client.read, _lines(process))
            yield client
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.aclose()


@asynccontextmanager
async def socket_client(path: Path) -> AsyncGenerator[RawClient]:
    """A connection to the server that listens on the unix socket `path`."""
    async with unix_connect(
        str(path), uri="ws://localhost/", max_size=None, ping_interval=None, compression=None
    ) as socket:

        async def frames() -> AsyncIterator[str]:
            with suppress(ConnectionClosed):
                async for frame in socket:
                    yield frame if isinstance(frame, str) else frame.decode()

        async with anyio.create_task_group() as tasks:
            client = RawClient(socket.send)
            tasks.start_soon(client.read, frames())
            yield client
            tasks.cancel_scope.cancel()


async def listening(path: Path) -> None:
    """Return once a server accepts connections on the unix socket `path`; that the file exists is not enough."""
    while True:
        with suppress(OSError):
            async with await anyio.connect_unix(str(path)):
                return
        await anyio.sleep(POLL_S)


async def _lines(process: Process) -> AsyncIterator[str]:
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
        while True:
            yield (await stream.receive_until(b"\n", LINE_BYTES_MAX)).decode()
