"""A JSON-RPC peer as the Codex app-server speaks it: one object a line, without a "jsonrpc" member.

It owns ids, the requests that wait for an answer, and the truth about what was written: an add to a thread's
queue can't be recognised by the server as a repeat, so "not one byte went out", "no answer came" and "the
server said no" are three errors. It knows no method's meaning, only which ones may ever be sent.

    PeerError
    ├── RequestNotWritten         proved: not one byte of it went to the transport
    ├── AnswerLost                written, at least in part, and no answer: it may have had its effect
    │   └── AnswerNotUnderstood   answered, but by nothing that this client can read
    └── ErrorAnswer               the server said no
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from channel.fault_places import Place, passing
from harness_adapters.codex.transport import LineTransport, NothingSent, TransportClosed
from harness_adapters.codex.wire import METHODS_EVER_SENT
from waiters.background import background_tasks

WRITE_S_MAX = 5.0
"""A server that reads nothing for so long is stuck: 4 MiB take it 0.4 s. Half a line may be out by then, so
nothing can follow it."""

SKIPPED_LINES_MAX = 1000
"""More lines than any banner has: the other end speaks something else."""

LATE_ANSWERS_AWAITED_MAX = 100
"""Requests remembered after their caller has gone; each keeps its text. Older ones are forgotten first."""

METHOD_NOT_FOUND = -32601

OnLateAnswer = Callable[[str, Mapping[str, Any], "object | ErrorAnswer"], None]
"""Called with method, params and the result or ErrorAnswer, in the reader's task: it must not wait or raise."""


class PeerError(Exception):
    """A request that has no result."""


class RequestNotWritten(PeerError):
    """Not one byte of the request went out, so it had no effect. It may be sent again, elsewhere too."""


class AnswerLost(PeerError):
    """The request went out, at least in part, and no answer will be waited for. Only look; never repeat it."""


class AnswerNotUnderstood(AnswerLost):
    """An answer came that holds neither a result nor an error this client can read. It proves nothing."""


class ErrorAnswer(PeerError):
    """The server answered with an error object."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"error {code}: {message}")


class MethodNeverSent(ValueError):
    """A fault of ours: the method is not among those that this client may send."""

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is not sent to a Codex app-server; see METHODS_EVER_SENT.")


@dataclass(eq=False)
class _Request:
    method: str
    params: Mapping[str, Any]
    begun: bool = False
    """From here on a byte of it may be out."""
    abandoned: bool = False
    """Its caller has gone; an answer is evidence for `on_late_answer`."""
    settled: anyio.Event = field(default_factory=anyio.Event)
    outcome: object = None
    """Once settled: the result, or the error to raise."""

    def settle(self, outcome: object) -> None:
        self.outcome = outcome
        self.settled.set()

    def unanswered(self, why: str) -> PeerError:
        if self.begun:
            return AnswerLost(f"{self.method} was written, but not answered: {why}")
        return RequestNotWritten(f"{self.method} was not written: {why}")


class Peer:
    """One side of a connection; made by `open_peer`."""

    def __init__(self, transport: LineTransport, tasks: TaskGroup, on_late_answer: OnLateAnswer) -> None:
        self._transport = transport
        self._tasks = tasks
        self._on_late_answer = on_late_answer
        self._waiting: dict[int, _Request] = {}
        self._last_id = 0
        self._write_lock = anyio.Lock()
        self.closed_because: str | None = None
        self.skipped_lines = 0
        """Lines that were no JSON object, or an answer to nothing that was asked."""

    @property
    def closed(self) -> bool:
        """True when nothing more can be written; `closed_because` says why. It never opens again."""
        return self.closed_because is not None

    async def request(self, method: str, params: Mapping[str, Any], *, within_s: float) -> object:
        """Write one request and return its result.

        If the caller is cancelled, or `within_s` runs out, an answer that comes later goes to
        `on_late_answer`. A request whose writing has begun is written whole even so.

        Raises:
            RequestNotWritten, AnswerLost, ErrorAnswer: see the module.
            MethodNeverSent: a fault of ours; nothing was written.
        """
        self._last_id += 1
        request_id = self._last_id
        line = _line({"id": request_id, "method": method, "params": params})
        request = self._waiting[request_id] = _Request(method, params)
        try:
            with anyio.move_on_after(within_s):
                await self._write(line, request)
                await request.settled.wait()
            if not request.settled.is_set():
                raise request.unanswered(f"{within_s:g} s have passed")
        except BaseException:
            self._abandon(request_id, request)
            raise
        passing(Place.REQUEST_ANSWERED, method)
        if isinstance(request.outcome, PeerError):
            raise request.outcome
        return request.outcome

    async def notify(self, method: str) -> None:
        """Write a notification without parameters. Raises RequestNotWritten or AnswerLost."""
        await self._write(_line({"method": method}), _Request(method, {}))

    async def _write(self, line: str, request: _Request) -> None:
        async with self._write_lock:
            if self.closed_because is not None:
                raise request.unanswered(self.closed_because)
            request.begun = True
            with anyio.move_on_after(WRITE_S_MAX, shield=True) as bound:
                await self._send(line, request)
            if bound.cancelled_caught:
                self._refuse_more(f"it has read nothing for {WRITE_S_MAX:g} s")
                raise request.unanswered(f"only a part could be written in {WRITE_S_MAX:g} s")

    async def _send(self, line: str, request: _Request) -> None:
        passing(Place.REQUEST_UNWRITTEN, request.method)
        try:
            await self._transport.send(line)
        except NothingSent as error:
            request.begun = False
            self._refuse_more(str(error))
            raise request.unanswered(str(error)) from error
        except TransportClosed as error:
            self._refuse_more(str(error))
            raise request.unanswered(str(error)) from error
        passing(Place.REQUEST_WRITTEN, request.method)

    def _abandon(self, request_id: int, request: _Request) -> None:
        if request.settled.is_set():
            self._report_late(request)
            return
        request.abandoned = request.begun
        if not request.begun:
            del self._waiting[request_id]
        abandoned = [key for key, other in self._waiting.items() if other.abandoned]
        if len(abandoned) > LATE_ANSWERS_AWAITED_MAX:
            del self._waiting[abandoned[0]]

    def _report_late(self, request: _Request) -> None:
        if isinstance(request.outcome, ErrorAnswer) or not isinstance(request.outcome, PeerError):
            self._on_late_answer(request.method, request.params, request.outcome)

    async def _read(self) -> None:
        try:
            while self.skipped_lines <= SKIPPED_LINES_MAX:
                self._take(await self._transport.receive())
            self._end(f"it sent {self.skipped_lines} lines that are no JSON-RPC")
        except TransportClosed as error:
            self._end(str(error))

    def _take(self, line: str) -> None:
        message = _object_in(line)
        if message is not None and "method" in message:
            if "id" in message:
                self._tasks.start_soon(self._refuse, message["id"])
            return  # a notification: nothing on the way of a delivery may wait for one
        answer_id = None if message is None else message.get("id")
        request = self._waiting.pop(answer_id, None) if type(answer_id) is int else None
        if message is None or request is None:
            self.skipped_lines += 1
            return
        request.settle(_outcome(request.method, message))
        if request.abandoned:
            self._report_late(request)

    async def _refuse(self, request_id: object) -> None:
        """Answer a request of the server, so that nothing hangs on us; nothing is ever approved."""
        error = {"code": METHOD_NOT_FOUND, "message": "agent-channel answers no requests and approves nothing"}
        line = json.dumps({"id": request_id, "error": error})
        try:
            await self._write(line, _Request("the answer to a request of the server", {}))
        except PeerError:
            pass  # the connection is over, and with it the request

    def _refuse_more(self, why: str) -> None:
        if self.closed_because is None:
            self.closed_because = why

    def _end(self, why: str) -> None:
        self._refuse_more(why)
        for request in self._waiting.values():
            request.settle(request.unanswered(why))
        self._waiting.clear()


@asynccontextmanager
async def open_peer(transport: LineTransport, on_late_answer: OnLateAnswer) -> AsyncIterator[Peer]:
    """Speak JSON-RPC over `transport` while the body runs. The transport stays its opener's to close."""
    async with background_tasks() as tasks:
        peer = Peer(transport, tasks, on_late_answer)
        tasks.start_soon(peer._read)
        try:
            yield peer
        finally:
            peer._end("this side has closed it")


def _line(message: Mapping[str, Any]) -> str:
    """One line for a request or notification: the one place where a method is let through."""
    if message["method"] not in METHODS_EVER_SENT:
        raise MethodNeverSent(message["method"])
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError as error:
        # Escaped, the server would drop the line without an answer.
        raise RequestNotWritten(
            f"{message['method']} was not written: its text holds a lone surrogate at {error.start}, "
            "which is no Unicode text. Send it without that character."
        ) from error
    return line


def _object_in(line: str) -> Mapping[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _outcome(method: str, answer: Mapping[str, Any]) -> object:
    error = answer.get("error")
    if error is None and "result" in answer:
        return answer["result"]
    if isinstance(error, dict) and type(error.get("code")) is int:
        return ErrorAnswer(error["code"], str(error.get("message", "")), error.get("data"))
    return AnswerNotUnderstood(f"{method} was answered with neither a result nor an error that can be read")
