"""What a client may rely on, of the real Codex 0.171.0 and of the fake alike: the same assertions for both.

Every rule here is Codex's. Where one fails for the real binary, Codex has changed, and the fake and the
product are to follow; where one fails for the fake only, the fake lies.
Over 400 lines: one suite; what is not in it may not be relied on.
"""

from typing import Any

import anyio
import pytest

from tests.contract.app_server_client import text
from tests.contract.app_servers import HANG, AppServers

pytestmark = pytest.mark.timeout(90)

MEETINGS_MAX = 10
"""Of a request and the end of input, until one is not answered; each is an even bet at the worst."""

NO_ROLLOUT = "failed to read thread: invalid thread-store request: no rollout found for thread id"


def add_params(thread: str, key: Any = "k", given: Any = None) -> dict[str, Any]:
    return {"threadId": thread, "clientUserMessageId": key, "input": text("x") if given is None else given}


# --- the queue ---


async def test_an_added_row_is_answered_as_it_was_sent_and_listed_in_order(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        first = await client.add(thread, "key-1", "one", "and more")
        second = await client.add(thread, "key-2", "two")
        page = await client.result("thread/queue/list", {"threadId": thread, "limit": 100})
    assert first == {
        "id": first["id"],
        "input": [{**part, "text_elements": []} for part in text("one", "and more")],
        "clientUserMessageId": "key-1",
        "responsesapiClientMetadata": None,
    }
    assert page == {"data": [first, second], "nextCursor": None}


async def test_the_same_key_is_never_recognised_whatever_happened_to_the_first_one(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client, servers.client() as other:
        ids = [(await client.add(thread, "key", "same"))["id"]]
        ids += [(await client.add(thread, "key", "same"))["id"], (await other.add(thread, "key", "other"))["id"]]
        assert await client.queued(thread) == ["key", "key", "key"]
        for row in ids:
            params = {"threadId": thread, "queuedSubmissionId": row}
            assert await client.result("thread/queue/delete", params) == {"deleted": True}
        ids.append((await client.add(thread, "key", "same"))["id"])
        assert (len(set(ids)), await client.queued(thread)) == (4, ["key"])


async def test_what_looks_wrong_in_a_key_or_a_text_is_taken_as_it_is(servers: AppServers):
    thread = await servers.thread()
    keys = ["", "k" * 5000, "nul\x00", "\u2028", "\U0001f468\u200d\U0001f469"]
    texts = ["", "a\r\nb ", "nul\x00", "/compact", "\u2028\U0001f468\u200d\U0001f469"]
    async with servers.client() as client:
        answered = [await client.add(thread.upper(), key, words) for key, words in zip(keys, texts, strict=True)]
        assert [row["clientUserMessageId"] for row in answered] == keys
        assert [row["input"][0]["text"] for row in answered] == texts
        assert await client.queued(thread) == keys


async def test_the_queue_is_paged_by_offset_so_a_consumed_row_hides_another(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        rows = [await client.add(thread, f"key-{number}", "x") for number in range(30)]

        async def page(**params: Any) -> tuple[list[str], str | None]:
            listed = await client.result("thread/queue/list", {"threadId": thread, **params})
            return [row["clientUserMessageId"] for row in listed["data"]], listed["nextCursor"]

        first, cursor = await page()
        assert (first, cursor) == ([f"key-{number}" for number in range(25)], "25")
        assert await page(limit=0) == (["key-0"], "1")
        assert await page(limit=100_000) == ([f"key-{number}" for number in range(30)], None)
        assert await page(cursor="1000") == ([], None)
        await client.result("thread/queue/delete", {"threadId": thread, "queuedSubmissionId": rows[0]["id"]})
        second, _ = await page(cursor=cursor)
    assert "key-25" not in first + second


async def test_a_queue_holds_100_rows_and_the_other_checks_come_first(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        for number in range(100):
            await client.add(thread, f"key-{number}", "x")
        add = "thread/queue/add"
        full = (-32600, "queue cannot contain more than 100 submissions")
        assert await client.error(add, add_params(thread)) == full
        empty = (-32600, "only user input can be added to the user-message queue")
        assert await client.error(add, add_params(thread, given=[])) == empty
        assert (await client.error(add, add_params(thread, given=text("x" * 1_048_577))))[0] == -32602
        assert len(await client.queued(thread)) == 100


async def test_an_input_of_1048576_characters_is_taken_and_one_more_refused(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        longest = "\U0001f600" * 1_048_576
        assert (await client.add(thread, "key", longest))["input"][0]["text"] == longest
        answer = await client.ask("thread/queue/add", add_params(thread, given=text("x" * 600_000, "y" * 600_000)))
        assert answer["error"] == {
            "code": -32602,
            "message": "Input exceeds the maximum length of 1048576 characters.",
            "data": {"input_error_code": "input_too_large", "max_chars": 1048576, "actual_chars": 1_200_000},
        }
        assert await client.queued(thread) == ["key"]


async def test_a_row_can_be_changed_and_deleted_once(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        row = await client.add(thread, "key", "old")
        where = {"threadId": thread, "queuedSubmissionId": row["id"]}
        changed = await client.result("thread/queue/update", {**where, "input": text("new")})
        assert changed["queuedSubmission"] == {**row, "input": [{**text("new")[0], "text_elements": []}]}
        deletions = [await client.result("thread/queue/delete", where) for _ in range(2)]
    assert deletions == [{"deleted": True}, {"deleted": False}]


async def test_answered_rows_survive_a_kill_and_no_answer_means_nothing(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        for number in range(5):
            await client.add(thread, f"answered-{number}", "x")
        await client.send("thread/queue/add", add_params(thread, "unanswered"))
        await client.kill()
    async with servers.client() as client:
        queued = await client.queued(thread)
    assert queued[:5] == [f"answered-{number}" for number in range(5)]
    assert queued[5:] in ([], ["unanswered"])


# --- who runs it ---


async def test_a_server_adds_to_a_thread_that_it_has_not_loaded_and_never_runs_it(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        await client.add(thread, "key", "x")
        read = await client.result("thread/read", {"threadId": thread})
        assert read["thread"]["status"] == {"type": "notLoaded"}
        assert await client.queued(thread) == ["key"]
        assert not [name for name in client.notified() if name.startswith(("turn/", "item/", "thread/"))]


async def test_the_process_that_resumes_a_thread_runs_its_rows_one_turn_each_in_order(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as bridge, servers.client() as owner:
        for number in range(3):
            await bridge.add(thread, f"key-{number}", f"text {number}\r\n ")
        await owner.result("thread/resume", {"threadId": thread, "excludeTurns": True})
        await bridge.wait_said(thread, key="key-2")
        said = await bridge.said(thread)
        page = await bridge.result("thread/items/list", {"threadId": thread})
        assert said == [(None, "hello"), *((f"key-{number}", f"text {number}\r\n ") for number in range(3))]
        assert await bridge.queued(thread) == []
    turns = [entry["turnId"] for entry in page["data"] if entry["item"]["type"] == "userMessage"]
    assert len(set(turns)) == 4


async def test_an_idle_owner_finds_the_row_that_another_process_added(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        await bridge.add(thread, "key", "x")
        await bridge.wait_said(thread, key="key")
        assert await bridge.queued(thread) == []


async def test_a_busy_owner_runs_the_row_right_after_its_turn(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        turn = await owner.start_turn(thread, HANG)
        await bridge.wait_said(thread, words=HANG)
        await bridge.add(thread, "key", "x")
        assert await bridge.queued(thread) == ["key"]
        await owner.start_turn(thread, "go on")
        await owner.turn_completed(turn)
        await bridge.wait_said(thread, key="key")


async def test_a_row_added_in_the_owner_itself_runs_and_its_turn_is_told_in_this_order(servers: AppServers):
    async with servers.client() as owner:
        thread = await owner.new_thread(servers.project)
        before = len(owner.notified())
        await owner.add(thread, "key", "x")
        item = await owner.notification("item/completed", lambda params: params["item"].get("clientId") == "key")
        await owner.turn_completed(item["turnId"])
        told = [name for name in owner.notified()[before:] if name != "warning"]
    assert told == [
        "thread/queue/changed",
        "thread/queue/changed",
        "thread/status/changed",
        "turn/started",
        "item/started",
        "item/completed",
        "item/started",
        "item/agentMessage/delta",
        "item/completed",
        "thread/tokenUsage/updated",
        "account/rateLimits/updated",
        "thread/readState/changed",
        "thread/status/changed",
        "turn/completed",
    ]


@pytest.mark.fault("F28")
async def test_an_interrupt_pauses_the_queue_also_for_the_next_owner_until_a_turn_completes(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        turn = await owner.start_turn(thread, HANG)
        await bridge.wait_said(thread, words=HANG)
        await bridge.add(thread, "key", "x")
        assert await owner.result("turn/interrupt", {"threadId": thread, "turnId": turn}) == {}
        assert (await owner.turn_completed(turn))["status"] == "interrupted"
        await owner.close_input()
        async with servers.client() as next_owner:
            await next_owner.result("thread/resume", {"threadId": thread, "excludeTurns": True})
            await next_owner.add(thread, "later", "y")
            assert await bridge.queued(thread) == ["key", "later"]
            await next_owner.turn_completed(await next_owner.start_turn(thread, "and again"))
            await bridge.wait_said(thread, key="later")
        assert [key for key, _ in await bridge.said(thread)][-2:] == ["key", "later"]


async def test_queue_start_runs_one_row_of_a_paused_queue_in_the_owner_only(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        start = {"threadId": thread}
        assert await owner.error("thread/queue/start", start) == (-32600, "queue is empty")
        turn = await owner.start_turn(thread, HANG)
        await bridge.wait_said(thread, words=HANG)
        await bridge.add(thread, "key", "x")
        busy = (-32600, "thread already has an active or pending turn")
        assert await owner.error("thread/queue/start", start) == busy
        elsewhere = (-32600, "resume the thread before starting a queued message")
        assert await bridge.error("thread/queue/start", start) == elsewhere
        await owner.result("turn/interrupt", {"threadId": thread, "turnId": turn})
        await owner.turn_completed(turn)
        started = await owner.result("thread/queue/start", start)
        await owner.turn_completed(started["turn"]["id"])
        assert ("key", "x") in await bridge.said(thread)


@pytest.mark.fault("F49")
async def test_a_message_that_a_hook_refuses_is_in_neither_place_for_ever(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        await owner.close_input()
        await servers.refuse_prompts()
        await bridge.add(thread, "key", "x")
        async with servers.client() as next_owner:
            await next_owner.result("thread/resume", {"threadId": thread, "excludeTurns": True})
            await next_owner.notification("turn/completed")
        assert await bridge.queued(thread) == []
        assert [key for key, _ in await bridge.said(thread)] == [None]
        turns = await bridge.result("thread/turns/list", {"threadId": thread, "itemsView": "full"})
        assert [len(turn["items"]) for turn in turns["data"]] == [0, 2]


async def test_another_process_sees_a_running_turn_as_interrupted_and_may_not_touch_it(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        turn = await owner.start_turn(thread, HANG)
        await bridge.wait_said(thread, words=HANG)
        seen = {}
        for name, client in (("owner", owner), ("bridge", bridge)):
            turns = await client.result("thread/turns/list", {"threadId": thread})
            read = await client.result("thread/read", {"threadId": thread})
            seen[name] = (turns["data"][0]["status"], read["thread"]["status"]["type"])
        assert seen == {"owner": ("inProgress", "active"), "bridge": ("interrupted", "notLoaded")}
        writer = (-32600, f"thread {thread} already has an active writer")
        for method in ("thread/resume", "thread/archive", "thread/unarchive"):
            assert await bridge.error(method, {"threadId": thread}) == writer
        missing = (-32600, f"thread not found: {thread}")
        assert await bridge.error("turn/start", {"threadId": thread, "input": text("x")}) == missing
        assert await bridge.error("turn/interrupt", {"threadId": thread, "turnId": turn}) == missing
        wrong = (-32600, f"expected active turn id x but found {turn}")
        assert await owner.error("turn/interrupt", {"threadId": thread, "turnId": "x"}) == wrong


async def test_an_owner_that_is_killed_leaves_its_thread_to_the_next_one(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        thread = await owner.new_thread(servers.project)
        await owner.start_turn(thread, HANG)
        await bridge.wait_said(thread, words=HANG)
        await bridge.add(thread, "key", "x")
        await owner.kill()
        await bridge.result("thread/resume", {"threadId": thread, "excludeTurns": True})
        await bridge.wait_said(thread, key="key")


# --- history ---


async def test_items_come_oldest_first_25_a_page_and_100_at_most(servers: AppServers):
    async with servers.client() as owner:
        thread = await owner.new_thread(servers.project)
        for number in range(13):
            await owner.turn_completed(await owner.start_turn(thread, f"text {number}", f"key-{number}"))

        async def page(**params: Any) -> tuple[list[str], dict[str, Any]]:
            listed = await owner.result("thread/items/list", {"threadId": thread, **params})
            return [entry["item"]["id"] for entry in listed["data"]], listed

        everything, whole = await page(limit=1000)
        assert (len(everything), whole["nextCursor"]) == (28, None)
        first, listed = await page()
        assert first == everything[:25]
        assert (await page(cursor=listed["nextCursor"]))[0] == everything[25:]
        newest, listed = await page(sortDirection="desc", limit=3)
        assert newest == everything[:-4:-1]
        assert (await page(sortDirection="desc", cursor=listed["nextCursor"], limit=2))[0] == everything[-4:-6:-1]
        assert (await page(sortDirection="desc", cursor=listed["backwardsCursor"], limit=1))[0] == newest[:1]
        assert (await page(limit=0))[0] == everything[:1]


async def test_turns_come_newest_first_and_carry_the_keys(servers: AppServers):
    async with servers.client() as owner:
        thread = await owner.new_thread(servers.project)
        await owner.turn_completed(await owner.start_turn(thread, "second", "key"))
        views = {}
        for view in ("notLoaded", "summary", "full"):
            turns = await owner.result("thread/turns/list", {"threadId": thread, "itemsView": view})
            views[view] = [[item.get("clientId") for item in turn["items"]] for turn in turns["data"]]
        read = await owner.result("thread/read", {"threadId": thread, "includeTurns": True})
    assert views["notLoaded"] == [[], []]
    assert views["summary"] == views["full"] == [["key", None], [None, None]]
    assert [turn["items"][0]["clientId"] for turn in read["thread"]["turns"]] == [None, "key"]


async def test_a_steered_message_is_an_item_but_not_in_the_summary_of_its_turn(servers: AppServers):
    async with servers.client() as owner:
        thread = await owner.new_thread(servers.project)
        turn = await owner.start_turn(thread, HANG, "first")
        await owner.wait_said(thread, key="first")
        assert await owner.start_turn(thread, "go on", "steered") == turn
        await owner.turn_completed(turn)
        seen = {}
        for view in ("summary", "full"):
            turns = await owner.result("thread/turns/list", {"threadId": thread, "itemsView": view, "limit": 1})
            seen[view] = [item.get("clientId") for item in turns["data"][0]["items"]]
    assert seen == {"summary": ["first", None], "full": ["first", "steered", None]}


async def test_a_legacy_thread_has_its_keys_in_the_turns_only(servers: AppServers):
    thread = await servers.thread(historyMode="legacy")
    async with servers.client() as bridge, servers.client() as owner:
        await bridge.add(thread, "key", "x")
        await owner.result("thread/resume", {"threadId": thread})
        await owner.notification("turn/completed")
        unsupported = (-32601, "thread/items/list is not supported yet")
        assert await bridge.error("thread/items/list", {"threadId": thread}) == unsupported
        turns = await bridge.result("thread/turns/list", {"threadId": thread, "itemsView": "full"})
        assert turns["data"][0]["items"][0]["clientId"] == "key"
        assert await bridge.queued(thread) == []


# --- threads ---


async def test_a_thread_without_a_turn_is_known_to_its_own_process_only(servers: AppServers):
    async with servers.client() as owner, servers.client() as bridge:
        started = await owner.result("thread/start", {"cwd": str(servers.project)})
        thread = started["thread"]["id"]
        where = {"threadId": thread}
        assert await bridge.error("thread/queue/add", add_params(thread)) == (-32603, f"{NO_ROLLOUT} {thread}")
        assert await bridge.error("thread/queue/list", where) == (-32603, f"{NO_ROLLOUT} {thread}")
        assert await owner.error("thread/turns/list", where) == (
            -32600,
            f"thread {thread} is not materialized yet; thread/turns/list is unavailable before first user message",
        )
        assert await owner.queued(thread) == []
        await owner.add(thread, "key", "first of all")
        await owner.notification("turn/completed")
        assert await bridge.said(thread) == [("key", "first of all")]


async def test_an_archived_thread_takes_nothing_and_keeps_its_rows(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        where = {"threadId": thread}
        await client.add(thread, "key", "x")
        assert await client.result("thread/archive", where) == {}
        archived = (
            -32600,
            f"session {thread} is archived. Run `codex unarchive {thread}` to unarchive it first.",
        )
        assert await client.error("thread/queue/add", add_params(thread)) == archived
        assert await client.error("thread/queue/add", add_params(thread, given=[])) == archived
        for method in ("thread/queue/list", "thread/queue/start", "thread/resume"):
            assert await client.error(method, where) == archived
        assert await client.said(thread) == [(None, "hello")]
        gone = (-32600, f"no rollout found for thread id {thread}")
        assert await client.error("thread/archive", where) == gone
        assert (await client.result("thread/unarchive", where))["thread"]["id"] == thread
        not_there = (-32600, f"no archived rollout found for thread id {thread}")
        assert await client.error("thread/unarchive", where) == not_there
        assert await client.queued(thread) == ["key"]
        assert await client.result("thread/delete", where) == {}
        assert await client.error("thread/queue/list", where) == (-32603, f"{NO_ROLLOUT} {thread}")


async def test_a_sub_agents_thread_takes_nothing_while_it_is_not_loaded(servers: AppServers):
    agent = await servers.sub_agent()
    async with servers.client() as client:
        refused = (-32600, "direct app-server input is not allowed for unloaded spawned sub-agents")
        for given in (None, []):
            assert await client.error("thread/queue/add", add_params(agent, given=given)) == refused
        assert await client.queued(agent) == []


# --- the wire ---


async def test_before_initialize_only_the_parser_answers(servers: AppServers):
    async with servers.process() as client:
        assert (await client.error("thread/queue/list", {"threadId": "x"})) == (-32600, "Not initialized")
        missing = (-32600, "Invalid request: missing field `threadId`")
        assert await client.error("thread/queue/add", {}) == missing
        assert (await client.error("bogus/method", {}))[1].startswith("Invalid request: unknown variant")
        assert client.notified() == []
        bad = {"clientInfo": {"name": "bad\nname", "version": "1"}}
        refused = (-32600, "Invalid clientInfo.name: 'bad\nname'. Must be a valid HTTP header value.")
        assert await client.error("initialize", bad) == refused
        result = await client.initialize(name="somebody")
        assert result["userAgent"].startswith("somebody/0.171.0 (")
        assert result["codexHome"] == str(servers.codex_home)
        again = {"clientInfo": {"name": "x", "version": "1"}}
        assert await client.error("initialize", again) == (-32600, "Already initialized")


async def test_notifications_come_before_the_first_other_answer_and_are_stamped(servers: AppServers):
    async with servers.client() as client:
        await client.ask("bogus/method", {})
        kinds = [message.get("method", "answer") for message in client.messages.items]
        stamps = [message["emittedAtMs"] for message in client.messages.items if "method" in message]
    assert kinds[0] == kinds[-1] == "answer"
    assert set(kinds[1:-1]) == {"configWarning", "remoteControl/status/changed"}
    assert all(isinstance(stamp, int) for stamp in stamps)


async def test_notifications_named_in_initialize_are_not_sent(servers: AppServers):
    quiet = {"experimentalApi": True, "optOutNotificationMethods": ["configWarning"]}
    async with servers.process() as client:
        info = {"clientInfo": {"name": "x", "version": "1"}, "capabilities": quiet}
        await client.result("initialize", info)
        await client.ask("bogus/method", {})
        assert client.notified() == ["remoteControl/status/changed"]


async def test_a_line_that_is_no_message_is_dropped_without_an_answer(servers: AppServers):
    dropped = [
        "garbage",
        "[]",
        '[{"id":91,"method":"bogus","params":{}}]',
        "5",
        "{}",
        '{"id":92}',
        '{"id":93,"method":5}',
        '{"id":94,"method":"bogus","params":{"text":"\\ud800"}}',
        '{"id":95,"method":"bogus","params":{"number":NaN}}',
        "",
    ]
    taken_for_notifications = [
        f'{{"id":{no_id},"method":"bogus","params":{{}}}}' for no_id in ("null", "1.5", '{"a":1}', "true")
    ]
    async with servers.client() as client:
        for line in [*dropped, *taken_for_notifications]:
            await client.send_line(line)
        await client.send_line('{"jsonrpc":"1.0","id":"last","method":"bogus","params":{},"more":1}')
        await client.answer("last")
        answered = [message["id"] for message in client.messages.items if "method" not in message]
        assert answered == [1, "last"]
        logged = await anyio.Path(servers.stderr).read_text()
    assert logged.count("Failed to deserialize JSONRPCMessage") == len(dropped)
    assert "\x1b[31mERROR\x1b[0m" in logged


async def test_without_the_experimental_capability_the_history_can_be_read_and_nothing_added(
    servers: AppServers,
):
    thread = await servers.thread()
    async with servers.client(experimental=False) as client:
        for method, params in (
            ("thread/queue/add", add_params(thread)),
            ("thread/queue/list", {"threadId": thread}),
        ):
            refused = (-32600, f"{method} requires experimentalApi capability")
            assert await client.error(method, params) == refused
        assert await client.said(thread) == [(None, "hello")]
        for method in ("thread/turns/list", "thread/read"):
            await client.result(method, {"threadId": thread})


async def test_requests_in_flight_are_all_answered_under_their_own_ids(servers: AppServers):
    thread = await servers.thread()
    async with servers.client() as client:
        sent = [await client.send("thread/queue/add", add_params(thread, f"key-{n}")) for n in range(20)]
        keys = [(await client.answer(each))["result"]["queuedSubmission"]["clientUserMessageId"] for each in sent]
        assert keys == [f"key-{number}" for number in range(20)]
        assert sorted(await client.queued(thread)) == sorted(keys)


async def test_the_end_of_input_ends_the_server_and_a_request_in_flight_gets_no_answer(servers: AppServers):
    """Unless it is answered before its input ends, on a busy machine: then once more."""
    thread = await servers.thread()
    for number in range(MEETINGS_MAX):
        key = f"last words {number}"
        async with servers.client() as client:
            request = await client.send("thread/queue/add", add_params(thread, key))
            assert await client.close_input() == 0
            await client.ended.wait()
        was_answered = request in [message.get("id") for message in client.messages.items]
        async with servers.client() as client:
            is_queued = key in await client.queued(thread)
        assert is_queued or not was_answered
        if not was_answered:
            return
    pytest.fail(f"each of {MEETINGS_MAX} requests was answered before the end of input was noticed")


async def test_a_missing_codex_home_ends_the_server_before_any_answer(servers: AppServers):
    servers.environment["CODEX_HOME"] = missing = str(servers.codex_home / "nowhere")
    async with servers.process() as client:
        await client.ended.wait()
        assert client.process is not None
        assert (await client.process.wait(), client.messages.items) == (1, [])
    reason = f'Error: CODEX_HOME points to "{missing}", but that path does not exist'
    assert reason in servers.stderr.read_text()


@pytest.mark.fault("F27")
async def test_a_broken_configuration_is_a_warning_and_nothing_else(servers: AppServers):
    thread = await servers.thread()
    with (servers.codex_home / "config.toml").open("a") as config:
        config.write("\n[broken\n")
    async with servers.client() as client:
        await client.add(thread, "key", "x")
        warning = await client.notification("configWarning", lambda params: "path" in params)
    assert warning["summary"] == "Invalid configuration; using defaults."
    assert warning["details"].endswith("unclosed table, expected `]`")
