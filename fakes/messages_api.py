"""A fake of the Anthropic Messages API, enough of it for the real Claude Code to run offline.

In a test, on a free loopback port:

    api = MessagesApi([Rule(shown("hello"), call("Bash", {"command": "date"}))])
    async with api.serve() as url:
        ...  # ANTHROPIC_BASE_URL=url
        request = await api.wait_for(result_of("Bash"))

By itself: `python -m fakes.messages_api --port 0 --script FILE --record FILE` prints its URL. The script is a
JSON file as `rules_from_json` reads it; the record gets one JSON object a request, with the session and body.

What Claude Code 2.1.332 asks for: HEAD /api/hello, POST /v1/messages?beta=true (streamed), and
POST /v1/messages/count_tokens. Requests without tools (titles) are answered too, but never use up a rule.
"""

import argparse
import json
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio

from channel.clock import IdSource, SystemIds
from fakes import http_sse
from fakes.messages_script import Answer, Predicate, Refusal, Reply, Rule, Text, ToolUse, rules_from_json, say
from fakes.messages_shown import ModelRequest, Notification, each_notification_once
from fakes.recorder import Recorder

SESSION_HEADER = "x-claude-code-session-id"
COUNTED_TOKENS = 100  # far below every limit, so that Claude Code never compacts by itself
USAGE = {"input_tokens": 1, "output_tokens": 1}
DEFAULT_ANSWER = say("ok")


class MessagesApi:
    """One scripted model. `requests` records every POST to /v1/messages."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        otherwise: Answer = DEFAULT_ANSWER,
        ids: IdSource | None = None,
        record: Path | None = None,
    ) -> None:
        """Take the script, and the answer where no rule applies; `record` is a file to append requests to."""
        self._rules = list(rules)
        self._uses = [0] * len(self._rules)
        self.requests = Recorder[ModelRequest]()
        self._otherwise = otherwise
        self._ids = ids or SystemIds()
        self._record = record

    def serve(self, port: int = 0) -> AbstractAsyncContextManager[str]:
        """Serve on the loopback address while the context is open; it yields the base URL."""
        return http_sse.serve_http(self._handle, port=port)

    async def wait_for(self, predicate: Predicate, *, start: int = 0) -> ModelRequest:
        """The first conversation request for which `predicate` holds, from request number `start` on.

        One that came before the call counts. It waits without end: bound it with `anyio.fail_after`.
        """

        def matches(request: ModelRequest) -> bool:
            return request.number >= start and request.is_conversation and predicate(request)

        return await self.requests.wait_for(matches)

    def notifications(self, session_id: str | None = None) -> list[Notification]:
        """What task notifications a session's model was shown so far, each once, in order.

        Without a session id: of all sessions, one session after the other.
        """
        sessions = dict.fromkeys(request.session_id for request in self.requests.items)
        wanted = [session_id] if session_id is not None else list(sessions)
        return [
            notification
            for each in wanted
            for notification in each_notification_once(r for r in self.requests.items if r.session_id == each)
        ]

    async def _handle(self, request: http_sse.Request, answer: http_sse.Answer) -> None:
        match request.method, request.path:
            case "HEAD", "/api/hello":
                await answer.send()
            case "POST", "/v1/messages/count_tokens":
                await answer.send_json({"input_tokens": COUNTED_TOKENS})
            case "POST", "/v1/messages":
                await self._answer_as_model(self._remember(request), answer)
            case _:
                missing = Refusal(404, "not_found_error", f"no {request.method} {request.path} here")
                await _send_refusal(missing, answer)

    def _remember(self, request: http_sse.Request) -> ModelRequest:
        seen = ModelRequest(len(self.requests.items), request.headers.get(SESSION_HEADER, ""), request.json())
        self.requests.add(seen)
        if self._record is not None:
            with self._record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"session_id": seen.session_id, "body": seen.body}) + "\n")
        return seen

    async def _answer_as_model(self, request: ModelRequest, answer: http_sse.Answer) -> None:
        chosen, held = self._choose(request)
        if held is not None:
            await held.wait()
        if isinstance(chosen, Refusal):
            await _send_refusal(chosen, answer)
        elif request.body.get("stream"):
            for event in _stream(self._message(request, chosen)):
                await answer.send_event(event["type"], event)
        else:
            await answer.send_json(self._message(request, chosen))

    def _choose(self, request: ModelRequest) -> tuple[Answer, anyio.Event | None]:
        if request.is_conversation:
            for index, rule in enumerate(self._rules):
                if self._uses[index] != rule.times and rule.when(request):
                    self._uses[index] += 1
                    return rule.answer_to(request), rule.held
        return self._otherwise, None

    def _message(self, request: ModelRequest, reply: Reply) -> dict[str, Any]:
        """The reply as the API's message object."""
        return {
            "id": f"msg_{self._ids.new_id()}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model", ""),
            "content": [self._block(block) for block in reply.blocks],
            "stop_reason": "tool_use" if any(isinstance(b, ToolUse) for b in reply.blocks) else "end_turn",
            "stop_sequence": None,
            "usage": USAGE,
        }

    def _block(self, block: Text | ToolUse) -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        use_id = f"toolu_{self._ids.new_id()}"
        return {"type": "tool_use", "id": use_id, "name": block.name, "input": dict(block.input)}


def _stream(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that spell out a message, each with its `type`."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            arguments = json.dumps(block["input"])
            start, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": USAGE}
    yield {"type": "message_stop"}


async def _send_refusal(refusal: Refusal, answer: http_sse.Answer) -> None:
    error = {"type": refusal.kind, "message": refusal.message}
    await answer.send_json({"type": "error", "error": error}, status=refusal.status)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; the first line on stdout is the base URL."""
    parser = argparse.ArgumentParser(prog="python -m fakes.messages_api", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0, the default, is any free one")
    parser.add_argument("--script", type=Path, help="JSON file with the rules; without it every answer is `ok`")
    parser.add_argument("--record", type=Path, help="file to append each request to, as a JSON line")
    options = parser.parse_args(arguments)
    rules = rules_from_json(json.loads(options.script.read_text("utf-8"))) if options.script else []
    anyio.run(_serve_until_signal, MessagesApi(rules, record=options.record), options.port)


async def _serve_until_signal(api: MessagesApi, port: int) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with api.serve(port) as url:
            print(url, flush=True)
            async for _ in signals:
                return


if __name__ == "__main__":
    main()
