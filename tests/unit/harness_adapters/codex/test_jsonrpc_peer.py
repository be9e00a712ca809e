"""The peer's promise: what is proved about the bytes of a request is what its error says.

Over 400 lines: one class, and one played server, which each test would have to share.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harness_adapters.codex import jsonrpc_peer
from harness_adapters.codex.jsonrpc_peer import (
    LATE_ANSWERS_AWAITED_MAX,
    SKIPPED_LINES_MAX,
    AnswerLost,
    AnswerNotUnderstood,
    ErrorAnswer,
    MethodNeverSent,
    Peer,
    RequestNotWritten,
    open_peer,
)
from harness_adapters.codex.transport import NothingSent, TransportClosed
from harness_adapters.codex.wire import METHODS_EVER_SENT
from tests.unit.harness_adapters.codex.played_server import PlayedServer

ADD = "thread/queue/add"
SOON = 5.0
BRIEF = 0.2
"""Enough to begin a write in memory, and then it has passed without an answer."""
Late = list[tuple[str, Mapping[str, Any], object]]


@pytest.fixture
def late() -> Late:
    return []


@pytest.fixture
async def server() -> AsyncIterator[PlayedServer]:
    played = PlayedServer()
    with anyio.fail_after(SOON):
        yield played
    played.clear_away()


def on_late(late: Late) -> Callable[[str, Mapping[str, Any], object], None]:
    return lambda method, params, outcome: late.append((method, params, outcome))


async def result_of(peer: Peer, results: dict[str, object], name: str) -> None:
    """One call, its result or its error kept under a name."""
    try:
        results[name] = await peer.request(ADD, {"name": name}, within_s=SOON)
    except jsonrpc_peer.PeerError as error:
        results[name] = error


async def test_a_request_is_one_line_without_a_jsonrpc_member(server: PlayedServer, late: Late) -> None:
    async with open_peer(server, on_late(late)) as peer, anyio.create_task_group() as tasks:
        results: dict[str, object] = {}
        tasks.start_soon(result_of, peer, results, "a\nb")
        asked = await server.asked()
        assert asked == {"id": asked["id"], "method": ADD, "params": {"name": "a\nb"}}
        server.answer(asked, {"ok": 1})
    assert results == {"a\nb": {"ok": 1}}


async def test_answers_out_of_order_reach_the_request_they_belong_to(server: PlayedServer, late: Late) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(result_of, peer, results, name)
            asked = [await server.asked() for _ in "abc"]
            for request in reversed(asked):
                server.answer(request, request["params"]["name"].upper())
    assert results == {"a": "A", "b": "B", "c": "C"}


async def test_a_line_of_several_mebibytes_passes_both_ways(server: PlayedServer, late: Late) -> None:
    text = "\U0001f600" * 1_000_000
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, results, text)
            request = await server.asked()
            server.answer(request, request["params"])
    assert results[text] == {"name": text}


async def test_an_error_answer_carries_code_message_and_data(server: PlayedServer, late: Late) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, results, "a")
            server.refuse(await server.asked(), -32602, "too long", {"max": 3})
    error = results["a"]
    assert isinstance(error, ErrorAnswer)
    assert (error.code, error.message, error.data) == (-32602, "too long", {"max": 3})


@pytest.mark.parametrize("answer", ["{}", '{"error":"no"}', '{"error":{"message":"no code"}}', '{"error":null}'])
@pytest.mark.fault("F25")
async def test_an_answer_that_says_neither_yes_nor_no_proves_nothing(
    server: PlayedServer, late: Late, answer: str
) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, results, "a")
            request = await server.asked()
            server.say(json.dumps({"id": request["id"], **json.loads(answer)}))
    assert isinstance(results["a"], AnswerNotUnderstood)


async def test_the_end_of_the_other_side_fails_all_pending_requests_and_refuses_later_ones(
    server: PlayedServer, late: Late
) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            for name in "ab":
                tasks.start_soon(result_of, peer, results, name)
                await server.asked()
            assert not peer.closed
            server.hang_up()
        assert [type(results[name]) for name in "ab"] == [AnswerLost, AnswerLost]
        assert "the played server is gone" in str(results["a"])
        assert peer.closed
        with pytest.raises(RequestNotWritten, match="the played server is gone"):
            await peer.request(ADD, {}, within_s=SOON)
    assert server.wrote_nothing()


async def test_leaving_the_peer_fails_the_requests_of_other_tasks(server: PlayedServer, late: Late) -> None:
    results: dict[str, object] = {}
    async with anyio.create_task_group() as tasks:
        async with open_peer(server, on_late(late)) as peer:
            tasks.start_soon(result_of, peer, results, "a")
            await server.asked()
    assert type(results["a"]) is AnswerLost


@pytest.mark.fault("F51")
async def test_a_transport_that_took_not_one_byte_leaves_the_request_unwritten(
    server: PlayedServer, late: Late
) -> None:
    server.break_writes(NothingSent("nobody listens"))
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(RequestNotWritten, match="nobody listens"):
            await peer.request(ADD, {}, within_s=SOON)
        assert peer.closed_because == "nobody listens"


async def test_a_write_that_broke_off_makes_the_answer_lost_and_nothing_follows_it(
    server: PlayedServer, late: Late
) -> None:
    server.break_writes(TransportClosed("broken pipe"))
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(AnswerLost, match="broken pipe"):
            await peer.request(ADD, {}, within_s=SOON)
        with pytest.raises(RequestNotWritten, match="broken pipe"):
            await peer.request(ADD, {}, within_s=SOON)


async def test_answers_to_earlier_requests_still_count_after_a_write_failed(server: PlayedServer, late: Late) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, results, "earlier")
            earlier = await server.asked()
            server.break_writes(NothingSent("it reads no more"))
            with pytest.raises(RequestNotWritten):
                await peer.request(ADD, {}, within_s=SOON)
            server.answer(earlier, "done")
    assert results == {"earlier": "done"}


async def test_a_time_out_after_the_write_is_a_lost_answer_and_a_late_one_is_kept_as_evidence(
    server: PlayedServer, late: Late
) -> None:
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(AnswerLost, match=f"{BRIEF:g} s have passed"):
            await peer.request(ADD, {"key": "k"}, within_s=BRIEF)
        server.answer(await server.asked(), {"id": "row"})
        await everything_said_is_read(peer, server)
    assert late == [(ADD, {"key": "k"}, {"id": "row"})]


async def test_a_late_refusal_is_evidence_too_and_a_late_riddle_is_not(server: PlayedServer, late: Late) -> None:
    async with open_peer(server, on_late(late)) as peer:
        refused, riddle = await abandoned(peer, server, 2)
        server.refuse(refused, -32600, "full")
        server.say(json.dumps({"id": riddle["id"]}))
        await everything_said_is_read(peer, server)
    ((_, params, outcome),) = late
    assert params == {"name": "0"}
    assert isinstance(outcome, ErrorAnswer)


async def test_a_time_out_behind_anothers_unfinished_line_leaves_the_request_unwritten(
    server: PlayedServer, late: Late
) -> None:
    results: dict[str, object] = {}
    server.read_no_more()
    async with open_peer(server, on_late(late)) as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(result_of, peer, results, "first")
        await server.write_begun.wait()
        with pytest.raises(RequestNotWritten, match="0 s have passed"):
            await peer.request(ADD, {}, within_s=0)
        server.read_again()
        server.answer(await server.asked(), "done")
    assert results == {"first": "done"}
    assert server.wrote_nothing()


async def test_a_caller_cancelled_during_the_write_leaves_a_whole_line_and_its_answer_is_evidence(
    server: PlayedServer, late: Late
) -> None:
    server.read_no_more()
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, {}, "cancelled")
            await server.write_begun.wait()
            tasks.cancel_scope.cancel()
            server.read_again()
        request = await server.asked()
        server.answer(request, {"id": "row"})
        await everything_said_is_read(peer, server)
    assert late == [(ADD, {"name": "cancelled"}, {"id": "row"})]


async def test_an_answer_read_before_its_cancelled_caller_could_look_is_evidence(
    server: PlayedServer, late: Late
) -> None:
    """The answer comes while the write still blocks, and the cancellation before the caller runs again."""
    server.read_no_more()
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, {}, "a")
            await server.write_begun.wait()
            server.say('{"id":1,"result":"done"}')
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            server.read_again()
    assert late == [(ADD, {"name": "a"}, "done")]


async def test_a_server_that_reads_nothing_is_given_up_and_half_a_line_is_a_lost_answer(
    server: PlayedServer, late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonrpc_peer, "WRITE_S_MAX", 0)
    server.read_no_more()
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(AnswerLost, match="only a part could be written"):
            await peer.request(ADD, {}, within_s=SOON)
        with pytest.raises(RequestNotWritten, match="it has read nothing"):
            await peer.request(ADD, {}, within_s=SOON)


async def test_only_so_many_abandoned_requests_are_remembered(server: PlayedServer, late: Late) -> None:
    async with open_peer(server, on_late(late)) as peer:
        for request in await abandoned(peer, server, LATE_ANSWERS_AWAITED_MAX + 1):
            server.answer(request, None)
        await everything_said_is_read(peer, server)
    assert len(late) == LATE_ANSWERS_AWAITED_MAX


@pytest.mark.fault("F26")
@pytest.mark.parametrize("request_id", [7, "seven", None])
@pytest.mark.parametrize("method", ["item/commandExecution/requestApproval", "something/new", ADD])
async def test_every_request_of_the_server_gets_an_error_answer(
    server: PlayedServer, late: Late, method: str, request_id: object
) -> None:
    async with open_peer(server, on_late(late)):
        server.say(json.dumps({"id": request_id, "method": method, "params": {}}))
        answer = await server.asked()
    assert answer["id"] == request_id
    assert answer["error"]["code"] == -32601
    assert "result" not in answer


async def test_a_request_of_the_server_does_not_hold_up_the_reader_while_writes_are_blocked(
    server: PlayedServer, late: Late
) -> None:
    results: dict[str, object] = {}
    async with open_peer(server, on_late(late)) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, peer, results, "a")
            request = await server.asked()
            server.read_no_more()
            server.say('{"id":1,"method":"item/tool/requestUserInput"}')
            server.answer(request, "done")
        assert results == {"a": "done"}
        server.read_again()
        assert (await server.asked())["error"]


async def test_notifications_are_ignored(server: PlayedServer, late: Late) -> None:
    async with open_peer(server, on_late(late)) as peer:
        server.say('{"method":"turn/started","params":{"id":1}}')
        await everything_said_is_read(peer, server)
        assert peer.skipped_lines == 0


@pytest.mark.fault("F25")
@pytest.mark.parametrize(
    "line",
    [
        "Welcome to Codex!",
        "",
        "[1,2]",
        "7",
        "{",
        '{"level":"info"}',
        '{"id":99,"result":{}}',
        '{"id":true,"result":{}}',
        '{"id":[],"result":{}}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
async def test_what_is_no_json_rpc_is_skipped_and_counted(server: PlayedServer, late: Late, line: str) -> None:
    async with open_peer(server, on_late(late)) as peer:
        server.say(line)
        await everything_said_is_read(peer, server)
        assert peer.skipped_lines == 1
        assert not peer.closed


async def test_a_program_that_speaks_something_else_for_ever_is_given_up(server: PlayedServer, late: Late) -> None:
    async with open_peer(server, on_late(late)) as peer:
        for _ in range(SKIPPED_LINES_MAX + 1):
            server.say("yes")
        while not peer.closed:
            await checkpoint()
        with pytest.raises(RequestNotWritten, match="lines that are no JSON-RPC"):
            await peer.request(ADD, {}, within_s=SOON)


@pytest.mark.fault("F23")
@pytest.mark.parametrize(
    "method",
    ["thread/resume", "thread/queue/start", "thread/queue/delete", "thread/queue/update", "turn/start", ""],
)
async def test_a_method_outside_the_list_is_never_written(server: PlayedServer, late: Late, method: str) -> None:
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(MethodNeverSent):
            await peer.request(method, {}, within_s=SOON)
        with pytest.raises(MethodNeverSent):
            await peer.notify(method)
    assert server.wrote_nothing()


@pytest.mark.fault("F23")
def test_the_methods_ever_sent_are_those_of_the_design() -> None:
    assert {
        "initialize",
        "initialized",
        "thread/queue/add",
        "thread/queue/list",
        "thread/items/list",
        "thread/turns/list",
    } == METHODS_EVER_SENT


@pytest.mark.fault("F44")
async def test_a_lone_surrogate_is_refused_before_anything_is_written(server: PlayedServer, late: Late) -> None:
    """The server drops such a line without an answer, which would look like a lost one."""
    async with open_peer(server, on_late(late)) as peer:
        with pytest.raises(RequestNotWritten, match="lone surrogate"):
            await peer.request(ADD, {"text": "\ud800"}, within_s=SOON)
        assert not peer.closed
    assert server.wrote_nothing()


async def test_an_error_of_the_body_comes_out_as_itself(server: PlayedServer, late: Late) -> None:
    with pytest.raises(KeyError):
        async with open_peer(server, on_late(late)):
            raise KeyError("of the body")


async def abandoned(peer: Peer, server: PlayedServer, number: int) -> list[dict[str, Any]]:
    """Requests that were written and whose callers were then cancelled."""
    async with anyio.create_task_group() as tasks:
        for name in range(number):
            tasks.start_soon(result_of, peer, {}, str(name))
        requests = [await server.asked() for _ in range(number)]
        tasks.cancel_scope.cancel()
    return requests


async def everything_said_is_read(peer: Peer, server: PlayedServer) -> None:
    """Return when the reader has taken all that the server said so far."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(result_of, peer, {}, "barrier")
        server.answer(await server.asked(), None)
