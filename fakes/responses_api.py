"""A fake of OpenAI's Responses API, so that the real Codex runs offline: `POST /v1/responses`, streamed.

    async with serve_responses_api() as api:
        api.script = on_user_text({"please join": [call_mcp("chan", "join", room="r"), Say("joined")]})
        ...  # a Codex whose provider has base_url f"{api.url}/v1"
        shown = await api.requests.wait_for(lambda request: "17 room alice" in request.last_user_text)

Every request is recorded before it is answered. By itself, with the replies of a file (`load_script`):

    python -m fakes.responses_api --port 0 --script replies.json --record requests.jsonl

What suffices for Codex 0.171.0 was measured: response.created, output_item.added, output_text.delta,
output_item.done and response.completed with a usage; nothing but this one path is ever asked.
"""

import argparse
import json
import re
import signal
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import anyio

from fakes.http_sse import Answer, Request, serve_http
from fakes.recorder import Recorder

PATH = "/v1/responses"
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class Say:
    """The model answers with a text, and the turn ends."""

    text: str


@dataclass(frozen=True)
class CallFunction:
    """The model calls a tool; Codex runs it and asks again with its output."""

    name: str
    arguments: Mapping[str, Any]
    namespace: str | None = None


@dataclass(frozen=True)
class Refuse:
    """The endpoint answers with an HTTP error instead of a stream."""

    status: int = 500
    message: str = "made to fail"


@dataclass(frozen=True)
class Hold:
    """The stream begins, and goes on with `then` when the test calls `release`: a turn held in mid-flight."""

    then: "Say | CallFunction" = field(default_factory=lambda: Say("released"))
    released: anyio.Event = field(default_factory=anyio.Event)

    def release(self) -> None:
        self.released.set()


@dataclass(frozen=True)
class HangUp:
    """The connection is closed without an answer."""


Reply = Say | CallFunction | Refuse | Hold | HangUp


def call_mcp(server: str, tool: str, **arguments: Any) -> CallFunction:
    """A call of a tool of the MCP server that Codex knows as `server`."""
    return CallFunction(tool, arguments, namespace=f"mcp__{server}")


def run_shell(command: str) -> CallFunction:
    """A call of Codex's own shell tool."""
    return CallFunction("exec_command", {"cmd": command})


@dataclass(frozen=True)
class ModelRequest:
    """One recorded request, and what the model was shown in it."""

    http: Request
    body: Mapping[str, Any]

    @property
    def thread_id(self) -> str:
        """The Codex thread that asks; empty if it is not Codex."""
        return self.http.headers.get("thread-id", "")

    @property
    def user_texts(self) -> list[str]:
        """Each text of each user message, oldest first; Codex's `<environment_context>` is one too."""
        messages = (item for item in self.body["input"] if item.get("role") == "user")
        return [part["text"] for message in messages for part in _parts(message["content"])]

    @property
    def last_user_text(self) -> str:
        """The newest user text: what this turn is about. Empty if there is none."""
        return self.user_texts[-1] if self.user_texts else ""

    @property
    def tool_outputs(self) -> list[str]:
        """What each tool call of the conversation returned, as the model reads it, oldest first."""
        return [_output_text(item) for item in self.body["input"] if item.get("type") == "function_call_output"]

    @property
    def step(self) -> int:
        """How many tool calls were answered since the last user text: 0 at the start of a turn."""
        answered = 0
        for item in self.body["input"]:
            if item.get("role") == "user":
                answered = 0
            elif item.get("type") == "function_call_output":
                answered += 1
        return answered


Script = Callable[[ModelRequest], Reply]


def say_ok(request: ModelRequest) -> Reply:
    """The default script: every turn ends at once with a short text."""
    return Say("OK")


def on_user_text(replies: Mapping[str, Sequence[Reply]]) -> Script:
    """A script by the turn's user text: the first pattern found in it (`re.search`) gives the replies.

    A turn's n-th request gets the n-th of them. Where none is left, or no pattern matches: `say_ok`.
    """

    def decide(request: ModelRequest) -> Reply:
        for pattern, sequence in replies.items():
            if re.search(pattern, request.last_user_text):
                return sequence[request.step] if request.step < len(sequence) else say_ok(request)
        return say_ok(request)

    return decide


class ResponsesApi:
    """The running fake. `script` may be replaced at any time; it decides each later request."""

    def __init__(self, script: Script = say_ok) -> None:
        self.script = script
        self.url = ""
        self.requests: Recorder[ModelRequest] = Recorder()
        self._ids = count(1)

    async def next_request(self) -> ModelRequest:
        """The oldest request that this has not returned yet."""
        return await self.requests.next()

    async def handle(self, request: Request, answer: Answer) -> None:
        """Record and answer one HTTP request (the handler for `serve_http`)."""
        if (request.method, request.path) != ("POST", PATH):
            await _refuse(answer, 404, f"the fake knows POST {PATH} only, not {request.method} {request.path}")
            return
        recorded = ModelRequest(request, request.json())
        reply = self.script(recorded)
        self.requests.add(recorded)
        match reply:
            case Refuse(status, message):
                await _refuse(answer, status, message)
            case HangUp():
                return
            case Hold(then, released):
                await self._stream(answer, then, released)
            case Say() | CallFunction():
                await self._stream(answer, reply, None)

    async def _stream(self, answer: Answer, reply: Say | CallFunction, released: anyio.Event | None) -> None:
        number = next(self._ids)
        response_id = f"resp_{number}"
        await _send(answer, "response.created", response={"id": response_id})
        if released is not None:
            await released.wait()
        for name, members in _item_events(reply, number):
            await _send(answer, name, output_index=0, **members)
        await _send(answer, "response.completed", response={"id": response_id, "usage": USAGE})


@asynccontextmanager
async def serve_responses_api(script: Script = say_ok, *, port: int = 0) -> AsyncGenerator[ResponsesApi]:
    """Run the fake on the loopback address until the context is left; its `url` has no path."""
    api = ResponsesApi(script)
    async with serve_http(api.handle, port=port) as url:
        api.url = url
        yield api


def load_script(path: Path) -> Script:
    """Read a script from JSON: an object from pattern to replies, as `on_user_text` takes them.

    A reply is one of `{"say": TEXT}`, `{"mcp": SERVER, "tool": NAME, "arguments": {...}}`,
    `{"shell": COMMAND}`, `{"error": STATUS}`, `{"hold": true}` (never released), `{"hang_up": true}`.
    Raises: `ValueError` naming the reply that is none of these.
    """
    replies: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(path.read_text())
    return on_user_text({pattern: [_parse_reply(reply) for reply in row] for pattern, row in replies.items()})


def _parse_reply(reply: Mapping[str, Any]) -> Reply:
    match reply:
        case {"say": str(text)}:
            return Say(text)
        case {"mcp": str(server), "tool": str(tool)}:
            return call_mcp(server, tool, **reply.get("arguments", {}))
        case {"shell": str(command)}:
            return run_shell(command)
        case {"error": int(status)}:
            return Refuse(status)
        case {"hold": True}:
            return Hold()
        case {"hang_up": True}:
            return HangUp()
    raise ValueError(f"not a reply: {json.dumps(reply)}; say, mcp + tool, shell, error, hold or hang_up")


def _item_events(reply: Say | CallFunction, number: int) -> Iterable[tuple[str, dict[str, Any]]]:
    """The events that carry one output item, without their common members."""
    if isinstance(reply, Say):
        item_id = f"msg_{number}"
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        item = {"type": "message", "id": item_id, "role": "assistant", "status": "completed"}
        yield "response.output_item.added", {"item": {**item, "status": "in_progress", "content": []}}
        delta = {"item_id": item_id, "content_index": 0, "delta": reply.text}
        yield "response.output_text.delta", delta
        yield "response.output_item.done", {"item": {**item, "content": [text]}}
        return
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": reply.name}
    if reply.namespace is not None:
        call["namespace"] = reply.namespace
    yield "response.output_item.added", {"item": {**call, "status": "in_progress", "arguments": ""}}
    done = {**call, "status": "completed", "arguments": json.dumps(dict(reply.arguments))}
    yield "response.output_item.done", {"item": done}


async def _send(answer: Answer, event: str, **members: Any) -> None:
    await answer.send_event(event, {"type": event, **members})


async def _refuse(answer: Answer, status: int, message: str) -> None:
    await answer.send_json({"error": {"message": message, "type": "fake", "code": None}}, status=status)


def _parts(content: str | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The text parts of a message's content, which the API takes as a string as well."""
    if isinstance(content, str):
        return [{"text": content}]
    return [part for part in content if "text" in part]


def _output_text(item: Mapping[str, Any]) -> str:
    return "".join(part["text"] for part in _parts(item["output"]))


async def _serve_alone(port: int, script: Script, record: TextIO | None) -> None:
    """Serve until SIGINT or SIGTERM, writing each request's body as a JSON line to `record`."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with serve_responses_api(script, port=port) as api, anyio.create_task_group() as tasks:
            print(api.url, flush=True)
            if record is not None:
                tasks.start_soon(_write_requests, api, record)
            await anext(aiter(signals))
            tasks.cancel_scope.cancel()


async def _write_requests(api: ResponsesApi, record: TextIO) -> None:
    while True:
        request = await api.next_request()
        print(json.dumps(request.body), file=record, flush=True)


def main() -> None:
    """Parse the command line, print the URL, serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m fakes.responses_api", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one (default)")
    parser.add_argument("--script", type=Path, help="JSON: an object from pattern to replies")
    parser.add_argument("--record", type=argparse.FileType("a"), help="append each request's body, a line each")
    options = parser.parse_args()
    script = load_script(options.script) if options.script else say_ok
    anyio.run(_serve_alone, options.port, script, options.record)


if __name__ == "__main__":
    main()
