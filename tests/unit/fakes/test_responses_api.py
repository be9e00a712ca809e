"""The fake Responses API as a client sees it: what it streams, what it records, what a test decides."""

import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from fakes.responses_api import (
    HangUp,
    Hold,
    Refuse,
    ResponsesApi,
    Say,
    call_mcp,
    load_script,
    on_user_text,
    run_shell,
    serve_responses_api,
)

WAIT_S = 10
User = dict[str, Any]


@asynccontextmanager
async def api_and_client() -> AsyncIterator[tuple[ResponsesApi, httpx2.AsyncClient]]:
    async with serve_responses_api() as api:
        async with httpx2.AsyncClient(base_url=api.url, timeout=WAIT_S, trust_env=False) as client:
            yield api, client


def user(*texts: str) -> User:
    return {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def tool_output(output: object) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": "call_1", "output": output}


async def ask(client: httpx2.AsyncClient, *conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """Send one request as Codex does; the events of the answer."""
    answer = await client.post("/v1/responses", json={"stream": True, "input": conversation})
    assert answer.headers["content-type"] == "text/event-stream"
    return parse_events(answer.text)


def parse_events(stream: str) -> list[dict[str, Any]]:
    frames = [frame.split("\n") for frame in stream.split("\n\n") if frame]
    events = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in events]
    return events


def done_item(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    [item] = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return item


async def test_without_a_script_every_turn_ends_with_a_short_text():
    async with api_and_client() as (_, client):
        events = await ask(client, user("hello"))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ]
    assert done_item(events)["content"][0]["text"] == "OK"
    assert events[-1]["response"]["usage"]["total_tokens"] == 2


async def test_a_tool_of_an_mcp_server_is_called_under_its_namespace():
    async with api_and_client() as (api, client):
        api.script = lambda request: call_mcp("chan", "join", room="r")
        item = done_item(await ask(client, user("join")))
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "mcp__chan", "join")
    assert json.loads(item["arguments"]) == {"room": "r"}


async def test_the_replies_of_a_pattern_follow_the_tool_calls_of_its_turn():
    async with api_and_client() as (api, client):
        api.script = on_user_text({"list": [run_shell("ls"), Say("listed")]})
        call = done_item(await ask(client, user("list it")))
        text = done_item(await ask(client, user("list it"), tool_output("a b")))
        beyond = done_item(await ask(client, user("list it"), tool_output("a"), tool_output("b")))
        other = done_item(await ask(client, user("list it"), tool_output("a"), user("thanks")))
    assert (call["name"], json.loads(call["arguments"])) == ("exec_command", {"cmd": "ls"})
    assert text["content"][0]["text"] == "listed"
    assert beyond["content"][0]["text"] == other["content"][0]["text"] == "OK"


async def test_what_the_model_was_shown_is_read_from_the_request():
    async with api_and_client() as (api, client):
        await ask(
            client,
            {"role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
            user("first", "second"),
            tool_output("plain"),
            tool_output([{"type": "input_text", "text": "in "}, {"type": "input_text", "text": "parts"}]),
            {"role": "user", "content": "third"},
        )
        shown = await api.next_request()
    assert shown.user_texts == ["first", "second", "third"]
    assert shown.last_user_text == "third"
    assert shown.tool_outputs == ["plain", "in parts"]
    assert shown.step == 0
    assert (shown.http.method, shown.http.path) == ("POST", "/v1/responses")


async def test_a_refused_request_is_an_http_error_and_is_recorded():
    async with api_and_client() as (api, client):
        api.script = lambda request: Refuse(429, "too fast")
        answer = await client.post("/v1/responses", json={"input": [user("hello")]})
        assert (answer.status_code, answer.json()["error"]["message"]) == (429, "too fast")
        assert (await api.next_request()).last_user_text == "hello"


async def test_a_held_turn_is_mid_flight_until_the_test_releases_it():
    hold = Hold(Say("after the hold"))
    events: list[dict[str, Any]] = []
    async with api_and_client() as (api, client):
        api.script = lambda request: hold

        async def take_a_turn() -> None:
            events.extend(await ask(client, user("wait")))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_a_turn)
                await api.next_request()
                assert events == []
                hold.release()
    assert done_item(events)["content"][0]["text"] == "after the hold"


async def test_a_hang_up_is_a_connection_closed_without_an_answer():
    async with api_and_client() as (api, client):
        api.script = lambda request: HangUp()
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post("/v1/responses", json={"input": []})
        assert len(api.requests.items) == 1


async def test_another_path_is_refused_by_name_and_not_recorded():
    async with api_and_client() as (api, client):
        answer = await client.get("/v1/models")
    assert answer.status_code == 404
    assert "/v1/models" in answer.json()["error"]["message"]
    assert api.requests.items == []


def test_a_reply_that_is_none_is_named(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text('{"hello": [{"says": "typo"}]}')
    with pytest.raises(ValueError, match=r'not a reply: {"says": "typo"}'):
        load_script(script)


async def test_it_runs_by_itself_with_a_script_and_records_the_bodies(tmp_path: Path):
    script, record = tmp_path / "script.json", tmp_path / "requests.jsonl"
    script.write_text('{"join": [{"mcp": "chan", "tool": "join", "arguments": {"room": "r"}}], "x": [{"error": 503}]}')
    command = [sys.executable, "-m", "fakes.responses_api", "--script", str(script), "--record", str(record)]
    with anyio.fail_after(WAIT_S):
        async with await anyio.open_process(command, stderr=None) as process:
            assert process.stdout is not None
            url = (await process.stdout.receive()).decode().strip()
            async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
                assert done_item(await ask(client, user("join")))["name"] == "join"
                assert (await client.post("/v1/responses", json={"input": [user("x")]})).status_code == 503
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    bodies = [json.loads(line) for line in record.read_text().splitlines()]
    assert [body["input"][0]["content"][0]["text"] for body in bodies] == ["join", "x"]
