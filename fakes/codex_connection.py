"""One client of the fake app-server: lines in, lines out.

Requests are dispatched through jsonrpcserver. Codex's dialect differs from JSON-RPC 2.0, so around it: no
"jsonrpc" member, other codes for what can't be parsed, a line that is no message dropped without an answer.
Each request runs in its own task, so answers may come in another order than the requests.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from jsonrpcserver import JsonRpcError, Success, async_dispatch_to_serializable

from fakes import codex_shapes as shapes
from fakes.codex_methods import EXPERIMENTAL, METHODS, Handler
from fakes.codex_params import INTERNAL_ERROR, check_params, refuse, unknown_variant
from fakes.codex_shapes import Json
from fakes.faults import Exchange

if TYPE_CHECKING:
    from fakes.codex_app_server import AppServer

TURN_PREFIXES = ("turn/", "item/")


class Connection:
    """`write` puts one line, without its end, to the client."""

    def __init__(self, server: "AppServer", write: Callable[[str], Awaitable[None]]) -> None:
        self.server = server
        self.initialized = False
        self.experimental = False
        self.silenced: set[str] = set()
        self._write_line = write
        self._writing = anyio.Lock()
        self._turns_silenced = False
        self._held: list[Json] = []
        self._questions: dict[int, str] = {}
        self._after_answer: list[tuple[str, Json]] = []

    async def open(self) -> None:
        """Pass the place `at_start`; to be called before the first line is read."""
        exchange = self._exchange("start", {})
        await self.server.faults.at("at_start", exchange)
        self._turns_silenced = "silent_turns" in exchange.marks

    async def receive(self, line: str) -> None:
        """Serve one line: a request, a notification, an answer to a question of ours, or none of them."""
        message = parse(line)
        if message is None:
            log_error("codex_app_server_transport::transport", "Failed to deserialize JSONRPCMessage")
            return
        self.server.home.note_received(self._noted(message))
        if "method" in message and "id" in message:
            await self._serve(message)

    async def notify(self, method: str, params: Json) -> None:
        """Tell the client, unless it asked not to be told."""
        if method in self.silenced or (self._turns_silenced and method.startswith(TURN_PREFIXES)):
            return
        message: Json = {"method": method, "params": params}
        if not self.server.version.is_early:
            message["emittedAtMs"] = self.server.home.clock.now_ms()
        await self._write(message)

    def after_answer(self, method: str, params: Json) -> None:
        """Tell everyone once the answer in the making is written."""
        self._after_answer.append((method, params))

    async def _serve(self, request: Json) -> None:
        await anyio.lowlevel.checkpoint()  # at the end of input a request that did not begin has no effect
        exchange = self._exchange(request["method"], request)
        await self.server.faults.at("before_effect", exchange)
        if "drop" in exchange.marks:
            return
        if exchange.answer is None:
            exchange.answer = await self._dispatch(request)
        await self.server.faults.at("after_effect", exchange)
        if "hold" in exchange.marks:
            self._held.append(exchange.answer)
        elif "drop" not in exchange.marks:
            await self._answer(exchange.answer)
        if request["method"] == "initialize" and self.initialized:
            await self._greet()
        await self.server.faults.at("after_answer", exchange)

    async def _answer(self, answer: Json) -> None:
        held, self._held = self._held, []
        for each in (answer, *held):
            await self._write(each)
        told, self._after_answer = self._after_answer, []
        for method, params in told:
            for connection in self.server.connections:
                await connection.notify(method, params)

    async def _greet(self) -> None:
        """What a client gets after `initialize`, before the answer to anything else."""
        for summary in self.server.config_warnings():
            await self.notify("configWarning", summary)
        if not self.server.version.is_early:
            await self.notify("remoteControl/status/changed", self.server.remote_control())

    async def _dispatch(self, request: Json) -> Json:
        methods = {name: self._guarded(name, request) for name in self.server.version.methods}
        params = request.get("params")
        complete = {**request, "jsonrpc": "2.0", "params": params if isinstance(params, dict) else {}}
        known = {name: complete[name] for name in ("jsonrpc", "id", "method", "params")}
        answer = await async_dispatch_to_serializable("", methods, context=self, deserializer=lambda _: known)
        assert isinstance(answer, dict)  # one request, not a batch
        return self._in_codex_words(answer, request["method"])

    def _guarded(self, name: str, request: Json) -> Handler:
        """The method's handler behind the checks that come before each: parse, initialized, experimental."""

        async def handle(connection: "Connection", /, **params: Any) -> Any:
            if name not in METHODS:
                raise refuse(f"the fake app-server does not play {name}", INTERNAL_ERROR)
            check_params(name, request.get("params"))
            if self.initialized == (name == "initialize"):
                raise refuse("Already initialized" if self.initialized else "Not initialized")
            if name in EXPERIMENTAL and not self.experimental:
                raise refuse(f"{name} requires experimentalApi capability")
            return Success(await METHODS[name](connection, **params))

        return handle

    def _in_codex_words(self, answer: Json, method: str) -> Json:
        del answer["jsonrpc"]
        error = answer.get("error")
        if error is None:
            return answer
        if error["message"] == "Internal error":
            raise RuntimeError(f"a handler of the fake failed at {method}: {error['data']}")
        if error["message"] == "Method not found":
            refusal: JsonRpcError = unknown_variant(method, self.server.version.methods)
            error = {"code": refusal.code, "message": refusal.message}
        return {"error": error, "id": answer["id"]}

    def _exchange(self, method: str, request: Json) -> Exchange:
        return Exchange(self.server.home, method, self._write_raw, self._ask, request)

    async def _ask(self, method: str, params: Json) -> None:
        """A request to the client. Its ids are the server's own: a client's may be the same."""
        question_id = len(self._questions)
        self._questions[question_id] = method
        await self._write({"id": question_id, "method": method, "params": params})

    def _noted(self, message: Json) -> Json:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        noted = {
            "pid": os.getpid(),
            "method": message.get("method"),
            "threadId": params.get("threadId"),
            "key": params.get("clientUserMessageId"),
        }
        if "method" not in message:
            noted["answers"] = self._questions.get(message["id"])
            noted["error"] = message.get("error")
        return noted

    async def _write(self, message: Json) -> None:
        await self._write_raw(json.dumps(message, ensure_ascii=False, separators=(",", ":")))

    async def _write_raw(self, line: str) -> None:
        async with self._writing:
            await self._write_line(line)


def parse(line: str) -> Json | None:
    """The message in `line`, or None where the real server finds none.

    As serde does, it takes no lone surrogate, no NaN and no batch. A request whose id is neither a string nor
    an integer is taken for a notification: it gets no answer either.
    """
    try:
        message = json.loads(line, parse_constant=_no_constant)
        json.dumps(message, ensure_ascii=False).encode()
    except ValueError:  # JSON's and Unicode's errors are both
        return None
    if not isinstance(message, dict):
        return None
    if not isinstance(message.get("id"), str | int) or isinstance(message["id"], bool):
        message.pop("id", None)
    if "method" in message:
        return message if isinstance(message["method"], str) else None
    answers = "id" in message and ("result" in message or "error" in message)
    return message if answers else None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def log_error(module: str, text: str) -> None:
    """A line on stderr as the real server writes them, colours included."""
    now = "2026-01-01T00:00:00.000000Z"
    dim, red, end = "\x1b[2m", "\x1b[31m", "\x1b[0m"
    print(f"{dim}{now}{end} {red}ERROR{end} {dim}{module}{end}{dim}:{end} {text}", file=sys.stderr, flush=True)


BUBBLEWRAP: Json = {"summary": shapes.BUBBLEWRAP_MISSING, "details": None}
