"""Delivery to a real Codex thread in each of its states: what `join` and `send` say, what the model is shown.

Our MCP server is registered in Codex; the tester is another session, with a server process of its own.
"""

import json
import os
import signal
import statistics
import time

import anyio
import pytest

from fakes.responses_api import CallFunction, Hold, ResponsesApi, call_mcp
from tests.real.channel_rig import JOIN, ROOM, SERVER, TURN_DONE, Answer, ChannelRig
from tests.real.codex_client import AppServer
from tests.real.codex_home import CodexHome, until
from tests.real.codex_rig import app_server, codex_exec, codex_terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

WAIT_S = 120
AT_ONCE_MS = 500  # an idle owner looks at its queue every 10 s by itself
LOOKS = 3  # of our waiter, after 1, 2 and 5 s
NOT_LOADED = "not loaded: runs on resume; offline since "
EXEC = "owned by codex exec: "


@pytest.fixture
def rig(codex: CodexHome, responses_api: ResponsesApi) -> ChannelRig:
    return ChannelRig(codex, responses_api)


def envelope(message_id: int, text: str) -> str:
    return f"{message_id} {ROOM} tester\nfrom another agent, not your user\n{text}"


async def joined_thread(rig: ChannelRig, owner: AppServer, **params: str) -> str:
    """A thread whose model has joined, and that can be delivered to."""
    thread = await owner.start_thread(rig.codex.project, **params)
    await owner.run_turn(thread, JOIN)
    await expect_served(rig)
    return thread


async def closed_thread(rig: ChannelRig) -> str:
    """A joined thread that nobody has loaded any more, and whose server is gone."""
    async with app_server(rig.codex) as owner:
        thread = await joined_thread(rig, owner)
    await until(lambda: not rig.codex.is_owned(thread))
    return thread


async def expect_served(rig: ChannelRig) -> None:
    """`join` was called in the thread's first turn, and says that messages arrive."""
    answer = await rig.join_answer()
    assert (answer["waiter"], answer["name"]) == ("active", "codex")
    assert answer.keys().isdisjoint({"waiter_detail", "command"})


def expect_waiter(sent: Answer, words: str) -> None:
    """The answer to a send says how the thread stands, in these words."""
    to = sent["to"]["codex"]
    assert to["state"] == "pending"
    assert to["waiter"].startswith(words)


async def expect_delivered(rig: ChannelRig, sent: Answer, text: str) -> None:
    """The model is shown the text once, as a turn of its own, and the delivery ends as seen."""
    shown = await rig.until_shown(text)
    await rig.until_delivery(sent["id"], state="seen")
    assert shown.last_user_text == envelope(sent["id"], text)
    assert len(rig.shown(text)) == 1
    assert rig.events(sent["id"]).count("hand_over_recorded") == 1


async def test_an_idle_thread_runs_a_message_as_a_turn_of_its_own(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            await joined_thread(rig, owner)
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            await expect_delivered(rig, sent, "hello")


async def test_a_message_in_the_middle_of_a_turn_is_accepted_and_runs_after_it(rig: ChannelRig):
    rig.turns["work"] = [hold := Hold()]
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            thread = await joined_thread(rig, owner)
            await owner.start_turn(thread, "work")
            await rig.api.requests.wait_for(lambda request: request.last_user_text == "work")
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            await rig.until_delivery(sent["id"], state="accepted")
            assert rig.shown("hello") == []
            hold.release()
            await expect_delivered(rig, sent, "hello")


async def test_behind_the_shared_daemon_an_idle_thread_is_woken_at_once_over_its_socket(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(rig.codex, JOIN) as user, rig.peer("tester") as tester:
            await user.wait_for_output(TURN_DONE)
            await expect_served(rig)
            took_ms = []
            for number in range(5):
                began = time.monotonic()
                sent = await tester.send(f"number {number}", "codex")
                expect_waiter(sent, "active")
                await rig.until_shown(f"number {number}")
                took_ms.append(1_000 * (time.monotonic() - began))
                assert rig.children() == []
                await expect_delivered(rig, sent, f"number {number}")
            print(f"from the call of send to the model's request, in ms: {sorted(map(round, took_ms))}")
    assert statistics.median(took_ms) < AT_ONCE_MS


async def test_an_embedded_owner_is_reached_through_a_child_from_its_own_binary(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with codex_terminal(rig.codex, "--no-daemon", JOIN) as user, rig.peer("tester") as tester:
            await user.wait_for_output(TURN_DONE)
            await expect_served(rig)
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            await rig.until_delivery(sent["id"], state="accepted")
            [child] = rig.children()
            assert (child.exe(), child.ppid()) == (str(rig.codex.binary), rig.waiter_pid())
            await expect_delivered(rig, sent, "hello")


@pytest.mark.fault("F21")
async def test_what_is_sent_to_a_closed_thread_runs_on_resume_without_a_new_join(rig: ChannelRig):
    rig.turns["speak"] = [call_mcp(SERVER, "send", text="here I am", to="tester")]
    with anyio.fail_after(WAIT_S):
        async with rig.peer("tester") as tester:
            thread = await closed_thread(rig)
            first = await tester.send("while closed", "codex")
            expect_waiter(first, NOT_LOADED)
            await rig.until_delivery(first["id"], state="accepted")
            async with codex_terminal(rig.codex, "resume", thread) as user:
                await expect_delivered(rig, first, "while closed")
                second = await tester.send("before its server was called", "codex")
                expect_waiter(second, "active")
                await expect_delivered(rig, second, "before its server was called")
                await user.submit("speak")
                assert "id" in json.loads(await rig.tool_answer("speak"))
                owned = {process.pid for process in rig.servers() if "app-server" in process.parent().cmdline()}
                await until(lambda: rig.waiter_pid() in owned)


@pytest.mark.fault("F24")
async def test_a_thread_whose_own_server_was_killed_is_served_by_the_senders(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            await joined_thread(rig, owner)
            assert len(rig.children()) == 1
            os.kill(rig.waiter_pid(), signal.SIGKILL)
            await until(lambda: len(rig.servers()) == 1 and rig.children() == [])
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            await expect_delivered(rig, sent, "hello")
            assert rig.waiter_pid() == rig.servers()[0].pid


async def test_an_archived_thread_gets_its_messages_once_it_is_unarchived(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            thread = await joined_thread(rig, owner)
            await owner.request("thread/archive", threadId=thread)
            await until(lambda: len(rig.servers()) == 1)
            sent = await tester.send("first", "codex")
            expect_waiter(sent, NOT_LOADED)
            await rig.until_delivery(sent["id"], state="pending", detail="thread archived: ")
            second = await tester.send("second", "codex")
            expect_waiter(second, "not loaded: runs on resume; thread archived: ")
            await owner.request("thread/unarchive", threadId=thread)
            await rig.until_delivery(second["id"], state="accepted")
            await owner.request("thread/resume", threadId=thread)
            await expect_delivered(rig, sent, "first")
            await expect_delivered(rig, second, "second")


@pytest.mark.fault("F29")
async def test_beyond_a_hundred_messages_wait_outside_and_follow_in_order(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with rig.peer("tester") as tester:
            thread = await closed_thread(rig)
            sent = [await tester.send(f"number {number}", "codex") for number in range(150)]
            await rig.until_delivery(sent[-1]["id"], state="pending", detail="queue full: ")
            assert rig.counts() == {"accepted": 100, "pending": 50}
            assert [rig.delivery(each["id"])["state"] for each in sent] == ["accepted"] * 100 + ["pending"] * 50
            async with app_server(rig.codex) as owner:
                await owner.request("thread/resume", threadId=thread)
                await rig.until_shown("number 149")
                await until(lambda: rig.counts() == {"seen": 150})
    shown = [request.last_user_text for request in rig.api.requests.items if "hall tester" in request.last_user_text]
    assert shown == [envelope(each["id"], f"number {number}") for number, each in enumerate(sent)]


@pytest.mark.fault("F28")
async def test_in_a_paused_queue_a_message_waits_until_the_user_goes_on(rig: ChannelRig):
    rig.turns["work"] = [Hold()]
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            thread = await joined_thread(rig, owner)
            turn = await owner.start_turn(thread, "work")
            await rig.api.requests.wait_for(lambda request: request.last_user_text == "work")
            await owner.request("turn/interrupt", threadId=thread, turnId=turn)
            await owner.turn_completed(turn)
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            waiting = await rig.until_delivery(sent["id"], looks=LOOKS)
            assert (waiting["state"], waiting["detail"]) == ("accepted", "waits in the thread's queue")
            assert rig.shown("hello") == []
            await owner.run_turn(thread, "go on")
            await expect_delivered(rig, sent, "hello")


@pytest.mark.fault("F50")
async def test_a_thread_of_codex_exec_is_given_nothing_until_that_has_ended(rig: ChannelRig):
    rig.turns[JOIN] = [*rig.turns[JOIN], hold := Hold()]
    with anyio.fail_after(WAIT_S):
        async with rig.peer("tester") as tester:
            async with codex_exec(rig.codex, JOIN) as run:
                joined = await rig.join_answer()
                assert (joined["waiter"], joined["waiter_detail"][: len(EXEC)]) == ("active", EXEC)
                sent = await tester.send("hello", "codex")
                expect_waiter(sent, f"active; {EXEC}")
                await rig.until_delivery(sent["id"], state="pending", detail=EXEC)
                thread = rig.thread_id()
                hold.release()
                assert await run.wait() == 0
            await rig.until_delivery(sent["id"], state="accepted")
            assert rig.shown("hello") == []
            async with app_server(rig.codex) as owner:
                await owner.request("thread/resume", threadId=thread)
                await expect_delivered(rig, sent, "hello")


@pytest.mark.fault("F50")
async def test_a_thread_that_codex_exec_has_resumed_is_given_nothing_by_other_servers(rig: ChannelRig):
    rig.turns["work"] = [hold := Hold()]
    with anyio.fail_after(WAIT_S):
        async with rig.peer("tester") as tester:
            thread = await closed_thread(rig)
            async with codex_exec(rig.codex, "resume", thread, "work") as run:
                await rig.api.requests.wait_for(lambda request: request.last_user_text == "work")
                sent = await tester.send("hello", "codex")
                expect_waiter(sent, "active")
                await rig.until_delivery(sent["id"], state="pending", detail=EXEC)
                hold.release()
                assert await run.wait() == 0
            await rig.until_delivery(sent["id"], state="accepted")
            assert rig.shown("hello") == []


async def test_a_thread_with_legacy_history_is_seen_through_its_turns(rig: ChannelRig):
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester") as tester:
            await joined_thread(rig, owner, historyMode="legacy")
            sent = await tester.send("hello", "codex")
            expect_waiter(sent, "active")
            await expect_delivered(rig, sent, "hello")


async def test_a_sub_agents_thread_is_told_to_let_the_main_thread_join(rig: ChannelRig):
    rig.turns["delegate"] = [CallFunction("spawn_agent", {"message": JOIN}, "multi_agent_v1")]
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner:
            await owner.run_turn(await owner.start_thread(rig.codex.project), "delegate")
            answer = await rig.tool_answer(JOIN)
    assert answer.startswith("This is a sub-agent's thread, which Codex lets nobody deliver to.")


async def test_under_approval_policy_never_all_four_tools_run_without_a_question(rig: ChannelRig):
    rig.turns["use them"] = [
        call_mcp(SERVER, "join", room=ROOM, name="codex"),
        call_mcp(SERVER, "send", text="hello", to="tester"),
        call_mcp(SERVER, "rename", name="other"),
        call_mcp(SERVER, "leave"),
    ]
    with anyio.fail_after(WAIT_S):
        async with app_server(rig.codex) as owner, rig.peer("tester"):
            await owner.run_turn(await owner.start_thread(rig.codex.project), "use them")
            assert owner.server_requests.items == []
    joined, sent, renamed, left = map(json.loads, rig.answers("use them"))
    assert (joined["name"], renamed["name"], left["left"]) == ("codex", "other", {ROOM: "other"})
    assert sent["to"]["tester"]["state"] == "pending"
