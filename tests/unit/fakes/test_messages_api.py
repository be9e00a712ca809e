"""The fake Messages API: what it answers, what it records, what it reads out of a request."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.streams.text import TextReceiveStream

from fakes.messages_api import MessagesApi
from fakes.messages_script import (
    Refusal,
    Reply,
    Rule,
    Text,
    ToolUse,
    anything,
    result_of,
    rules_from_json,
    say,
    shown,
)
from fakes.messages_shown import ModelRequest, Notification, each_notification_once

WAIT_S = 5
TOOLS = [{"name": "Bash"}]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def event(text: str) -> dict[str, Any]:
    """A Monitor event as Claude Code shows it to an idle session."""
    notification = (
        "<task-notification>\n<task-id>b1</task-id>\n"
        f'<summary>Monitor event: "room"</summary>\n<event>{text}</event>\n</task-notification>'
    )
    return user(f"<system-reminder>\n[SYSTEM NOTIFICATION]\n\n{notification}\n</system-reminder>")


def shown_event(text: str) -> Notification:
    return Notification("b1", 'Monitor event: "room"', text, "")


def model(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def request_of(*messages: dict[str, Any], tools: list[Any] = TOOLS) -> ModelRequest:
    return ModelRequest(0, "s1", {"tools": tools, "messages": list(messages)})


async def post(url: str, *messages: dict[str, Any], session: str = "s1", **body: Any) -> httpx2.Response:
    request = {"model": "m", "tools": TOOLS, "messages": list(messages), **body}
    headers = {"X-Claude-Code-Session-Id": session}
    async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_S) as client:
        return await client.post(f"{url}/v1/messages?beta=true", json=request, headers=headers)


def events_of(response: httpx2.Response) -> list[dict[str, Any]]:
    """The server-sent events of a streamed answer; each one's name is also the `type` of its data."""
    events = []
    for frame in response.text.strip().split("\n\n"):
        name, data = frame.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


async def test_a_streamed_answer_spells_out_a_text_and_a_tool_call():
    reply = Reply((Text("so: é"), ToolUse("Bash", {"command": "date"})))
    async with MessagesApi([Rule(anything, reply)]).serve() as url:
        response = await post(url, user("hi"), stream=True)
    assert response.headers["content-type"] == "text/event-stream"
    events = events_of(response)
    assert [each["type"] for each in events] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "so: é"}
    assert events[4]["content_block"]["name"] == "Bash"
    assert json.loads(events[5]["delta"]["partial_json"]) == {"command": "date"}
    assert events[7]["delta"]["stop_reason"] == "tool_use"


async def test_without_stream_the_answer_is_one_message():
    async with MessagesApi(otherwise=say("plain")).serve() as url:
        message = (await post(url, user("hi"))).json()
    assert message["content"] == [{"type": "text", "text": "plain"}]
    assert message["stop_reason"] == "end_turn"


async def test_hello_and_count_tokens_are_answered_and_any_other_path_is_not_found():
    async with MessagesApi().serve() as url, httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.head(f"{url}/api/hello")).status_code == 200
        counted = await client.post(f"{url}/v1/messages/count_tokens", json={})
        assert counted.json()["input_tokens"] > 0
        assert (await client.get(f"{url}/other")).json()["error"]["type"] == "not_found_error"


async def test_the_first_rule_with_uses_left_answers_and_then_the_default_does():
    rules = [Rule(shown("red"), say("1")), Rule(shown("red"), say("2")), Rule(shown("blue"), say("3"))]
    said = []
    async with MessagesApi(rules, otherwise=say("default")).serve() as url:
        for text in ["blue sky", "red", "red", "red", "blue sky"]:
            said.append((await post(url, user(text))).json()["content"][0]["text"])
    assert said == ["3", "1", "2", "default", "default"]


async def test_a_request_without_tools_uses_up_no_rule():
    async with MessagesApi([Rule(anything, say("ruled"))], otherwise=say("default")).serve() as url:
        title = (await post(url, user("hi"), tools=[])).json()
        turn = (await post(url, user("hi"))).json()
    assert title["content"][0]["text"] == "default"
    assert turn["content"][0]["text"] == "ruled"


async def test_an_answer_can_be_made_from_the_request():
    async with MessagesApi([Rule(anything, lambda r: say(r.texts[0].upper()))]).serve() as url:
        assert (await post(url, user("hi"))).json()["content"][0]["text"] == "HI"


async def test_a_refusal_is_an_error_of_the_api():
    async with MessagesApi([Rule(anything, Refusal(400, "invalid_request_error", "no"))]).serve() as url:
        response = await post(url, user("hi"), stream=True)
    assert response.status_code == 400
    assert response.json() == {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


async def test_a_held_answer_is_recorded_at_once_and_sent_when_released():
    held, answers = anyio.Event(), []
    api = MessagesApi([Rule(anything, say("late"), held=held)])

    async def ask(url: str) -> None:
        answers.append((await post(url, user("hi"))).json()["content"][0]["text"])

    async with api.serve() as url:
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, url)
                await api.wait_for(shown("hi"))
                assert answers == []
                held.set()
    assert answers == ["late"]


async def test_wait_for_takes_past_and_coming_requests_but_none_before_its_start():
    api = MessagesApi()
    async with api.serve() as url:
        await post(url, user("first"), session="one")
        with anyio.fail_after(WAIT_S):
            past = await api.wait_for(anything)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(post, url, user("second"))
                coming = await api.wait_for(anything, start=past.number + 1)
    assert (past.session_id, past.texts, coming.texts) == ("one", ["first"], ["second"])


async def test_notifications_are_told_apart_by_session_and_counted_once():
    api = MessagesApi()
    async with api.serve() as url:
        await post(url, event("a"), session="one")
        await post(url, event("a"), session="two")
        await post(url, event("a"), model("ok"), event("b"), session="one")
    assert [each.event for each in api.notifications("one")] == ["a", "b"]
    assert [each.event for each in api.notifications()] == ["a", "b", "a"]


def test_the_newest_part_of_a_request_follows_the_last_words_of_the_model():
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
    request = request_of(
        user("old"),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{**result, "content": [{"type": "text", "text": "broken"}]}]},
        {"role": "system", "content": [{"type": "text", "text": "note"}]},
    )
    assert request.texts == ["old", "note"]
    assert request.newest_texts == ["note"]
    (found,) = request.newest_results
    assert (found.tool, found.text, found.is_error) == ("Bash", "broken", True)
    assert result_of("Bash")(request)
    assert not result_of("Monitor")(request)
    assert shown("broken")(request)
    assert not shown("old")(request)


def test_an_event_text_has_its_entities_undone_and_its_lines_kept():
    request = request_of(event("x &lt;/event&gt; &amp;amp;\n  y"))
    assert request.notifications == [shown_event("x </event> &amp;\n  y")]


def test_the_end_of_a_monitor_is_a_notification_without_an_event():
    text = (
        "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n"
        '<summary>Monitor "room" stream ended</summary>\n</task-notification>'
    )
    expected = Notification("b1", 'Monitor "room" stream ended', None, "completed")
    assert request_of(user(text)).notifications == [expected]


def test_several_notifications_in_one_message_are_read_in_order():
    blocks = [{"type": "text", "text": event(text)["content"]} for text in "ab"]
    request = request_of({"role": "user", "content": blocks})
    assert [each.event for each in request.notifications] == ["a", "b"]


def test_a_repeated_history_shows_nothing_twice_but_a_text_shown_twice_counts_twice():
    first = request_of(event("a"))
    again = request_of(event("a"))
    second = request_of(event("a"), model("ok"), event("a"))
    assert each_notification_once([first, again, second]) == [shown_event("a")] * 2


def test_a_conversation_cut_short_by_compaction_goes_on_counting():
    before = request_of(event("a"), model("ok"), event("b"))
    after = request_of(user("summary"), event("c"))
    later = request_of(user("summary"), event("c"), model("ok"), event("d"))
    assert [each.event for each in each_notification_once([before, after, later])] == ["a", "b", "c", "d"]


def test_requests_beside_the_conversation_show_the_agent_nothing():
    assert each_notification_once([request_of(event("a"), tools=[])]) == []


def test_a_script_in_json_gives_conditions_answers_and_uses():
    rules = rules_from_json(
        [
            {"shown": "go", "say": "I will", "call": [{"name": "Bash", "input": {"command": "x"}}]},
            {"result_of": "Bash", "refuse": {"status": 529, "kind": "overloaded_error", "message": "m"}},
            {"hold": True, "times": None},
        ]
    )
    go, stay = request_of(user("go")), request_of(user("stay"))
    assert [[rule.when(each) for each in (go, stay)] for rule in rules] == [[True, False], [False] * 2, [True] * 2]
    assert rules[0].answer_to(go) == Reply((Text("I will"), ToolUse("Bash", {"command": "x"})))
    assert rules[1].answer_to(go) == Refusal(529, "overloaded_error", "m")
    assert [rule.times for rule in rules] == [1, 1, None]
    assert [rule.held is not None for rule in rules] == [False, False, True]


@pytest.mark.parametrize("item", [{"says": "typo"}, {"shown": "no answer"}])
def test_a_wrong_rule_in_json_is_refused_with_its_text(item: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(item.values()))):
        rules_from_json([item])


async def test_it_runs_by_itself_with_a_script_and_a_record(tmp_path: Path):
    script, record = tmp_path / "script.json", tmp_path / "record.jsonl"
    script.write_text(json.dumps([{"shown": "hi", "say": "scripted"}]))
    command = [sys.executable, "-m", "fakes.messages_api", "--script", str(script), "--record", str(record)]
    root = Path(__file__).parents[3]
    with anyio.fail_after(WAIT_S):
        async with await anyio.open_process(command, cwd=root, stderr=None) as process:
            assert process.stdout is not None
            url = (await TextReceiveStream(process.stdout).receive()).strip()
            message = (await post(url, user("hi"), session="s9")).json()
            process.terminate()
            assert await process.wait() == 0
    assert message["content"][0]["text"] == "scripted"
    recorded = json.loads(record.read_text())
    assert (recorded["session_id"], recorded["body"]["messages"]) == ("s9", [user("hi")])
