"""Smoke tests of the rig: the real Codex, offline, in each way that the other real tests run it.

They also hold the facts that those tests and the product stand on; whose rule it is: Codex's, always.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from fakes.responses_api import (
    CallFunction,
    Hold,
    ModelRequest,
    Reply,
    ResponsesApi,
    Say,
    call_mcp,
    on_user_text,
)
from tests.real.codex_client import AppServerError, ConnectionEnded
from tests.real.codex_home import CodexHome, codex_home, until
from tests.real.codex_rig import app_server, codex_exec, codex_terminal, daemon_client, wait_for_daemon
from tests.real.terminal import ESCAPE

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

WAIT_S = 40  # a start takes a second on a quiet machine; several run side by side on a busy one
BEFORE_THE_TICK_S = 5  # an idle owner looks at its queue every 10 s by itself
NOTE = on_user_text({"note it": [call_mcp("probe", "note", text="hi"), Say("written down")]})


def user_said(text: str) -> Callable[[ModelRequest], bool]:
    return lambda request: request.last_user_text == text


def of_last_call(codex: CodexHome) -> dict[str, Any]:
    """The `_meta` of the newest tool call that the probe server was sent."""
    return codex.probe_events("call")[-1]["params"]["_meta"]


async def test_the_model_is_shown_the_text_of_a_turn(codex: CodexHome, responses_api: ResponsesApi):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            thread = await owner.start_thread(codex.project)
            turn = await owner.run_turn(thread, "hello")
            shown = await responses_api.next_request()
    assert (turn["status"], shown.last_user_text, shown.thread_id) == ("completed", "hello", thread)
    assert codex.processes() == []


async def test_a_tool_call_tells_the_mcp_server_its_thread_and_its_parent_owns_it(
    codex: CodexHome, responses_api: ResponsesApi
):
    responses_api.script = NOTE
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            thread = await owner.start_thread(codex.project)
            await owner.run_turn(thread, "note it")
            assert codex.is_owned(thread)
        shown = await responses_api.requests.wait_for(lambda request: request.step == 1)
    [started] = codex.probe_events("started")
    assert shown.tool_outputs[-1].endswith('{"noted":"hi"}')
    assert of_last_call(codex)["threadId"] == of_last_call(codex)["sessionId"] == thread
    assert (started["parent"]["pid"], started["parent"]["exe"]) == (owner.process_id, str(codex.binary))
    assert "CODEX_HOME" not in started["environ"]
    assert not codex.writer_lock(thread).exists()


async def test_an_idle_owner_runs_what_another_process_queued_at_its_next_tick(
    codex: CodexHome, responses_api: ResponsesApi
):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner, app_server(codex) as other:
            thread = await owner.start_thread(codex.project)
            await owner.run_turn(thread, "hello")
            await other.queue_add(thread, "key-1", "from elsewhere")
            await responses_api.requests.wait_for(user_said("from elsewhere"))
            await owner.notification("turn/completed", threadId=thread)
            assert await other.queued_keys(thread) == []
            assert await other.item_keys(thread) == [None, "key-1"]


async def test_behind_the_daemon_an_add_over_its_socket_wakes_an_idle_thread_before_the_tick(
    codex: CodexHome, responses_api: ResponsesApi
):
    responses_api.script = NOTE
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(codex, "note it") as user:
            await user.wait_for_output("written down")
            thread = of_last_call(codex)["threadId"]
            async with daemon_client(codex) as daemon:
                await daemon.queue_add(thread, "key-1", "over the socket")
                with anyio.fail_after(BEFORE_THE_TICK_S):
                    await responses_api.requests.wait_for(user_said("over the socket"))
    [started] = codex.probe_events("started")
    assert "--managed-daemon" in started["parent"]["cmdline"]
    assert Path(started["parent"]["exe"]).is_relative_to(codex.codex_home)


async def test_the_embedded_terminal_program_owns_its_threads_until_it_quits(
    codex: CodexHome, responses_api: ResponsesApi
):
    responses_api.script = NOTE
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(codex, "--no-daemon", "note it") as user:
            await user.wait_for_output("written down")
            thread = of_last_call(codex)["threadId"]
            await user.submit("typed by hand")
            await responses_api.requests.wait_for(user_said("typed by hand"))
            assert codex.is_owned(thread)
            assert not codex.control_socket.exists()
            await user.wait_for_output("OK")
            assert await user.quit() == 0
    assert codex.probe_events("started")[0]["parent"]["pid"] == user.process.pid
    assert not codex.writer_lock(thread).exists()


async def test_closing_the_terminals_window_ends_the_embedded_program_and_its_servers_by_eof_alone(
    codex: CodexHome, responses_api: ResponsesApi
):
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(codex, "--no-daemon", "hello") as user:
            await responses_api.next_request()
            user.hang_up()
            await user.process.wait()
            await until(lambda: codex.processes() == [])
    assert codex.probe_events("signal") == []
    assert len(codex.probe_events("eof")) == 1


async def test_a_request_to_a_killed_server_ends_without_an_answer(codex: CodexHome):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            os.kill(owner.process_id or 0, signal.SIGKILL)
            with pytest.raises((ConnectionEnded, anyio.BrokenResourceError)):
                await owner.request("thread/list")


async def test_escape_interrupts_the_turn_and_pauses_the_queue(codex: CodexHome, responses_api: ResponsesApi):
    responses_api.script = on_user_text({"note it": [call_mcp("probe", "note", text="hi"), Hold()]})
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(codex, "note it") as user:
            await responses_api.requests.wait_for(lambda request: request.step == 1)
            thread = of_last_call(codex)["threadId"]
            await user.wait_for_output("esc to interrupt")
            user.press(ESCAPE)
            await user.wait_for_output("Conversation interrupted")
            async with daemon_client(codex) as daemon:
                await daemon.queue_add(thread, "key-1", "while paused")
                assert await daemon.queued_keys(thread) == ["key-1"]
                [turn] = (await daemon.request("thread/turns/list", threadId=thread))["data"]
    assert turn["status"] == "interrupted"


async def test_resuming_in_a_terminal_runs_what_waited_in_the_queue(codex: CodexHome, responses_api: ResponsesApi):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as first:
            thread = await first.start_thread(codex.project)
            await first.run_turn(thread, "hello")
        async with app_server(codex) as other:
            await other.queue_add(thread, "key-1", "waited for you")
        async with codex_terminal(codex, "resume", thread):
            shown = await responses_api.requests.wait_for(user_said("waited for you"))
            await wait_for_daemon(codex)
    assert shown.user_texts[-2:] == ["hello", "waited for you"]


async def test_exec_says_so_in_each_tool_call_and_resumes_a_thread(codex: CodexHome, responses_api: ResponsesApi):
    responses_api.script = NOTE
    with anyio.fail_after(WAIT_S):
        async with codex_exec(codex, "note it") as run:
            assert await run.wait() == 0
        thread = of_last_call(codex)["threadId"]
        async with codex_exec(codex, "resume", thread, "and then?") as run:
            assert await run.wait() == 0
        shown = await responses_api.requests.wait_for(user_said("and then?"))
    assert of_last_call(codex)["x-codex-turn-metadata"]["turn_trigger"] == "exec"
    assert codex.probe_events("started")[0]["parent"]["cmdline"][1] == "exec"
    assert (shown.user_texts[-2], shown.thread_id) == ("note it", thread)


async def test_a_thread_with_legacy_history_lists_its_keys_by_turn_only(codex: CodexHome):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            thread = await owner.start_thread(codex.project, historyMode="legacy")
            await owner.run_turn(thread, "hello")
            await owner.queue_add(thread, "key-1", "queued")
            recorded = await owner.notifications.wait_for(
                lambda message: message["method"] == "item/completed" and "key-1" in json.dumps(message)
            )
            await owner.turn_completed(recorded["params"]["turnId"])  # before, the turn may be listed without items
            with pytest.raises(AppServerError) as refusal:
                await owner.item_keys(thread)
            page = await owner.request("thread/turns/list", threadId=thread, itemsView="full")
    assert (refusal.value.code, refusal.value.message) == (-32601, "thread/items/list is not supported yet")
    assert page["data"][0]["items"][0]["clientId"] == "key-1"


async def test_an_archived_thread_refuses_adds_until_it_is_unarchived(codex: CodexHome):
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            thread = await owner.start_thread(codex.project)
            await owner.run_turn(thread, "hello")
            await owner.request("thread/archive", threadId=thread)
            assert not codex.writer_lock(thread).exists()
            with pytest.raises(AppServerError, match=r"-32600: session .* is archived\."):
                await owner.queue_add(thread, "key-1", "too late")
            await owner.request("thread/unarchive", threadId=thread)
            await owner.queue_add(thread, "key-1", "in time")
            assert await owner.queued_keys(thread) == ["key-1"]


async def test_a_sub_agents_tool_call_names_its_own_thread_and_the_root_session(
    codex: CodexHome, responses_api: ResponsesApi
):
    def script(request: ModelRequest) -> Reply:
        match request.last_user_text, request.step:
            case "delegate", 0:
                return CallFunction("spawn_agent", {"message": "note it"}, "multi_agent_v1")
            case "delegate", 1:
                agent = json.loads(request.tool_outputs[0])["agent_id"]
                return CallFunction("wait_agent", {"targets": [agent]}, "multi_agent_v1")
        return NOTE(request)

    responses_api.script = script
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner, app_server(codex) as other:
            root = await owner.start_thread(codex.project)
            await owner.run_turn(root, "delegate")
            agent = of_last_call(codex)["threadId"]
            with pytest.raises(AppServerError, match="-32600: direct app-server input is not allowed"):
                await other.queue_add(agent, "key-1", "hello, agent")
    assert agent != root
    assert of_last_call(codex)["sessionId"] == root
    assert of_last_call(codex)["x-codex-turn-metadata"]["thread_source"] == "subagent"


async def test_a_trusted_prompt_hook_runs_before_the_model_is_asked(codex: CodexHome, responses_api: ResponsesApi):
    codex.configure(responses_api.url, prompt_hook="cat > hooked.json")
    with anyio.fail_after(WAIT_S):
        async with app_server(codex) as owner:
            await owner.trust_hooks(codex.project)
            await owner.run_turn(await owner.start_thread(codex.project), "hello")
    assert json.loads((codex.project / "hooked.json").read_text())["prompt"] == "hello"


async def test_a_failing_test_leaves_no_process_and_no_socket_behind(tmp_path: Path, responses_api: ResponsesApi):
    with anyio.fail_after(WAIT_S):
        with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
            async with codex_home(tmp_path) as home:
                home.configure(responses_api.url)
                async with codex_terminal(home):
                    await wait_for_daemon(home)
                    socket = home.control_socket.resolve()
                    await until(lambda: len(home.processes()) >= 3)  # terminal, daemon, updater
                    raise ZeroDivisionError
    assert home.processes() == []
    assert not socket.exists()
