"""The fake app-server itself: its faults happen where they say, its differences are those that are written down.

What it shares with the real one is in tests/contract; here are only rules of ours.
Over 400 lines: one fake; a rule a test.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from fakes.codex_app_server import control_socket, write_executable
from fakes.codex_methods import METHODS
from fakes.codex_shapes import Json
from fakes.codex_store import CodexHome, text_input
from fakes.codex_thread import AlreadyOwned, ThreadOwner, new_thread
from fakes.codex_versions import CURRENT
from fakes.divergences import DIVERGENCES
from fakes.faults import APPROVAL_METHOD, UNKNOWN_METHOD, WHATS_AT, Fault, set_faults
from tests.contract.app_server_client import RawClient, listening, socket_client, stdio_client, text

ADD = "thread/queue/add"
WAIT_S = 20
LINE_BYTES_MAX = 1_000


class Bench:
    """A home with one idle thread, and the executable that stands in for `codex`."""

    def __init__(self, root: Path) -> None:
        codex_home = root / ".codex"
        codex_home.mkdir()
        self.root = root
        self.home = CodexHome(codex_home)
        self.thread = new_thread(self.home)
        self.codex = write_executable(root / "codex", "--tick", "0.02")

    def server(self, *arguments: str):
        """A client of a new server process, started as the product does it."""
        command = [str(self.codex), "app-server", "--disable", "plugins", *arguments]
        return stdio_client(command, {"CODEX_HOME": str(self.home.path)}, self.root / "stderr.log")

    def add(self, key: str, words: str = "x") -> Json:
        return {"threadId": self.thread, "clientUserMessageId": key, "input": text(words)}

    def queued(self) -> list[str]:
        return [row.client_id for row in self.home.rows(self.thread)]

    def said(self) -> list[str | None]:
        items = [item.body for item in self.home.items(self.thread)]
        return [body["clientId"] for body in items if body["type"] == "userMessage"]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A test with it may take no longer than WAIT_S: the fake's own waits have no limit."""
    each = Bench(tmp_path)
    with anyio.fail_after(WAIT_S):
        yield each
    each.home.close()


# --- the shared state ---


async def test_the_test_itself_owns_the_thread_and_steps_through_the_window(bench: Bench):
    bench.home.add_row(bench.thread, text_input("x"), "key")
    with ThreadOwner(bench.home, bench.thread) as owner:
        assert owner.take_row() is not None
        assert (bench.queued(), bench.said()) == ([], [None])
        owner.record_item()
        assert bench.said() == [None, "key"]
        owner.complete()
        assert owner.run_row() is None


@pytest.mark.fault("F50")
async def test_exec_consumes_a_row_at_its_end_without_an_answer_of_its_model(bench: Bench):
    for key in ("first", "second"):
        bench.home.add_row(bench.thread, text_input("x"), key)
    ThreadOwner(bench.home, bench.thread).end_exec()
    assert (bench.queued(), bench.said()) == (["second"], [None, "first"])
    assert bench.home.turns(bench.thread)[-1].status == "interrupted"
    assert bench.home.items(bench.thread)[-1].body["type"] == "userMessage"


async def test_a_thread_has_one_owner_at_a_time(bench: Bench):
    with ThreadOwner(bench.home, bench.thread), pytest.raises(AlreadyOwned):
        ThreadOwner(bench.home, bench.thread)
    ThreadOwner(bench.home, bench.thread).close()


@pytest.mark.fault("F20")
async def test_an_owner_process_killed_in_the_window_leaves_neither_row_nor_item(bench: Bench):
    bench.home.add_row(bench.thread, text_input("x"), "key")
    module = [sys.executable, "-m", "fakes.codex_thread", "--home", str(bench.home.path), "--thread"]
    async with await anyio.open_process([*module, bench.thread], cwd=Path(__file__).parents[3]) as owner_process:
        assert owner_process.stdin is not None and owner_process.stdout is not None
        said = BufferedByteReceiveStream(owner_process.stdout)
        assert await said.receive_until(b"\n", LINE_BYTES_MAX) == b"owned"
        await owner_process.stdin.send(b"take_row\n")
        assert await said.receive_until(b"\n", LINE_BYTES_MAX) == b"take_row done"
        owner_process.kill()
    with ThreadOwner(bench.home, bench.thread) as owner:
        assert owner.run_row() is None
    assert (bench.queued(), bench.said()) == ([], [None])
    assert bench.home.turns(bench.thread)[-1].status == "interrupted"


async def test_an_owner_process_for_demos_runs_what_it_finds(bench: Bench):
    module = [sys.executable, "-m", "fakes.codex_thread", "--home", str(bench.home.path), "--thread"]
    bench.home.add_row(bench.thread, text_input("[[text:well]]"), "key")
    command = [*module, bench.thread, "--every", "0.01"]
    async with await anyio.open_process(command, cwd=Path(__file__).parents[3]) as owner_process:
        assert owner_process.stdout is not None
        said = BufferedByteReceiveStream(owner_process.stdout)
        assert await said.receive_until(b"\n", LINE_BYTES_MAX) == b"owned"
        assert (await said.receive_until(b"\n", LINE_BYTES_MAX)).endswith(b": well")
        owner_process.kill()
    assert bench.said() == [None, "key"]


@pytest.mark.fault("F27")
async def test_a_home_that_cannot_be_written_ends_the_server_before_any_answer(tmp_path: Path):
    """As a CODEX_HOME without write permission does; a file in the way stops root too."""
    (tmp_path / "fake").touch()
    codex = write_executable(tmp_path / "codex")
    stderr = tmp_path / "stderr.log"
    with anyio.fail_after(WAIT_S):
        async with stdio_client([str(codex), "app-server"], {"CODEX_HOME": str(tmp_path)}, stderr) as client:
            await client.ended.wait()
            assert client.process is not None and await client.process.wait() == 1
    assert f"Error: failed to initialize sqlite state runtime under {tmp_path}" in stderr.read_text()


async def test_every_message_to_a_server_is_noted_with_its_key(bench: Bench):
    async with bench.server() as client:
        await client.initialize()
        await client.result(ADD, bench.add("key"))
    noted = [(entry["method"], entry["threadId"], entry["key"]) for entry in bench.home.received()]
    assert noted == [("initialize", None, None), ("initialized", None, None), (ADD, bench.thread, "key")]


# --- faults ---


@pytest.mark.parametrize(
    "spec", ["", "after_effect", "nowhere:x:die", "before_effect:x:lose_row", "after_effect:x:unheard", "a:b"]
)
def test_a_fault_that_would_never_happen_is_refused(spec: str):
    with pytest.raises(ValueError, match="is no fault"):
        Fault.parse(spec)


def test_a_fault_says_where_when_and_what():
    assert Fault.parse("after_effect:thread/queue/add#3:error=-32000:too: late") == Fault(
        "after_effect", ADD, 3, "error", "-32000:too: late"
    )
    assert [Fault.parse(f"at_start:start{nth}:die").nth for nth in ("", "#2", "#*")] == [1, 2, 0]


@pytest.mark.fault("F22")
@pytest.mark.parametrize(
    ("place", "what", "row_stays", "code"),
    [
        ("before_effect", "die", False, -signal.SIGKILL),
        ("before_effect", "exit", False, 1),
        ("after_effect", "die", True, -signal.SIGKILL),
        ("after_effect", "exit", True, 1),
    ],
)
async def test_a_server_that_dies_with_an_add_in_flight_answers_nothing_and_has_or_has_not_added(
    bench: Bench, place: str, what: str, row_stays: bool, code: int
):
    set_faults(bench.home, f"{place}:{ADD}#2:{what}")
    async with bench.server() as client:
        await client.initialize()
        await client.result(ADD, bench.add("first"))
        unanswered = await client.send(ADD, bench.add("second"))
        await client.ended.wait()
        assert client.process is not None and await client.process.wait() == code
        assert unanswered not in [message.get("id") for message in client.messages.items]
    assert bench.queued() == (["first", "second"] if row_stays else ["first"])
    async with bench.server() as next_client:
        await next_client.initialize()
        await next_client.result(ADD, bench.add("third"))
    assert bench.queued()[-1] == "third"


@pytest.mark.parametrize(("place", "keys"), [("before_effect", []), ("after_effect", ["key"])])
async def test_a_dropped_answer_never_comes_though_the_server_lives(bench: Bench, place: str, keys: list[str]):
    set_faults(bench.home, f"{place}:{ADD}:drop")
    async with bench.server() as client:
        await client.initialize()
        unanswered = await client.send(ADD, bench.add("key"))
        await client.result("thread/queue/list", {"threadId": bench.thread})
        assert unanswered not in [message.get("id") for message in client.messages.items]
    assert bench.queued() == keys


async def test_a_delay_holds_an_answer_until_the_test_lets_it_go(bench: Bench):
    set_faults(bench.home, f"after_effect:{ADD}:delay=lost")
    async with bench.server() as client:
        await client.initialize()
        request = await client.send(ADD, bench.add("key"))
        await bench.home.signals.wait("reached-lost")
        assert bench.queued() == ["key"]
        await client.result("thread/queue/list", {"threadId": bench.thread})
        bench.home.signals.set("lost")
        await client.answer(request)


async def test_a_held_answer_comes_after_the_next_one(bench: Bench):
    set_faults(bench.home, f"after_effect:{ADD}:hold")
    async with bench.server() as client:
        await client.initialize()
        first = await client.send(ADD, bench.add("first"))
        second = await client.send(ADD, bench.add("second"))
        await client.answer(first)
        answered = [message["id"] for message in client.messages.items if "method" not in message]
        assert answered[-2:] == [second, first]


@pytest.mark.fault("F12")
async def test_a_lost_row_was_accepted_and_is_nowhere(bench: Bench):
    set_faults(bench.home, f"after_effect:{ADD}:lose_row")
    async with bench.server() as client:
        await client.initialize()
        assert (await client.result(ADD, bench.add("key")))["queuedSubmission"]["clientUserMessageId"] == "key"
    assert bench.queued() == []


async def test_another_text_stands_under_the_same_key(bench: Bench):
    set_faults(bench.home, f"before_effect:{ADD}:other_text")
    async with bench.server() as client:
        await client.initialize()
        await client.result(ADD, bench.add("key", "mine"))
    (row,) = bench.home.rows(bench.thread)
    assert (row.client_id, row.input[0]["text"] == "mine") == ("key", False)


@pytest.mark.parametrize(("place", "keys"), [("before_effect", []), ("after_effect", ["key"])])
async def test_an_error_proves_nothing_about_the_effect(bench: Bench, place: str, keys: list[str]):
    set_faults(bench.home, f"{place}:{ADD}:error")
    async with bench.server() as client:
        await client.initialize()
        assert await client.error(ADD, bench.add("key")) == (-32603, "database or disk is full")
    assert bench.queued() == keys


@pytest.mark.fault("F25")
async def test_answers_of_other_shapes(bench: Bench):
    listing = "thread/queue/list"
    specs = ("non_object", "extra_fields", "missing_fields")
    set_faults(bench.home, ";".join(f"after_effect:{listing}#{n}:{what}" for n, what in enumerate(specs, 1)))
    async with bench.server() as client:
        await client.initialize()
        await client.result(ADD, bench.add("key"))
        where = {"threadId": bench.thread}
        results = [await client.result(listing, where) for _ in specs]
    assert results[0] == "not an object"
    assert results[1]["data"][0]["addedInTheFuture"] == results[1]["addedInTheFuture"] == {"nested": [1, None]}
    assert results[2] == {"data": [{**results[2]["data"][0], "input": text("x"), "clientUserMessageId": "key"}]}


@pytest.mark.fault("F25")
async def test_a_banner_comes_before_any_json(bench: Bench):
    async with bench.server("--faults", "at_start:start:banner=Hello there!") as client:
        await client.initialize()
        assert client.junk == ["Hello there!"]


@pytest.mark.fault("F26")
async def test_what_the_client_answers_to_a_question_is_noted(bench: Bench):
    set_faults(bench.home, f"before_effect:{ADD}:ask_approval; after_answer:{ADD}:ask_unknown")
    async with bench.server() as client:
        await client.initialize()
        await client.result(ADD, bench.add("key"))
        for method in (APPROVAL_METHOD, UNKNOWN_METHOD):
            question = await client.messages.wait_for(lambda message, m=method: message.get("method") == m)
            refusal = {"id": question["id"], "error": {"code": -32601, "message": "no"}}
            await client.send_line(json.dumps(refusal))
        await client.ask("bogus", {})
    answers = [(entry["answers"], entry["error"]["code"]) for entry in bench.home.received() if "answers" in entry]
    assert answers == [(APPROVAL_METHOD, -32601), (UNKNOWN_METHOD, -32601)]


@pytest.mark.fault("F9")
async def test_silent_turns_run_without_a_notification(bench: Bench):
    async with bench.server("--faults", "at_start:start:silent_turns") as client:
        await client.initialize()
        await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        await client.result(ADD, bench.add("key"))
        await client.wait_said(bench.thread, key="key")
        assert not [name for name in client.notified() if name.startswith(("turn/", "item/"))]


async def test_the_gap_between_row_and_item_is_held_open_by_a_fault(bench: Bench):
    set_faults(bench.home, "row_taken:turn:delay=gap")
    async with bench.server() as client:
        await client.initialize()
        await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        await client.result(ADD, bench.add("key"))
        await bench.home.signals.wait("reached-gap")
        assert (bench.queued(), bench.said()) == ([], [None])
        bench.home.signals.set("gap")
        await client.wait_said(bench.thread, key="key")


@pytest.mark.fault("F20")
async def test_a_server_that_dies_in_the_gap_leaves_neither_row_nor_item(bench: Bench):
    set_faults(bench.home, "row_taken:turn:die")
    async with bench.server() as client:
        await client.initialize()
        await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        await client.send(ADD, bench.add("key"))
        await client.ended.wait()
    assert (bench.queued(), bench.said()) == ([], [None])


@pytest.mark.fault("F49")
async def test_a_blocked_message_ends_its_turn_and_the_next_one_runs(bench: Bench):
    set_faults(bench.home, "row_taken:turn:block")
    async with bench.server() as client:
        await client.initialize()
        await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        for key in ("blocked", "next"):
            await client.result(ADD, bench.add(key))
        await client.wait_said(bench.thread, key="next")
    assert (bench.queued(), bench.said()) == ([], [None, "next"])


async def test_a_stopped_server_answers_again_when_it_is_continued(bench: Bench):
    set_faults(bench.home, f"after_effect:{ADD}:stop")
    async with bench.server() as client:
        await client.initialize()
        request = await client.send(ADD, bench.add("key"))
        assert client.process is not None
        await anyio.to_thread.run_sync(os.waitid, os.P_PID, client.process.pid, os.WSTOPPED | os.WNOWAIT)
        client.process.send_signal(signal.SIGCONT)
        await client.answer(request)


def test_every_fault_of_the_table_is_tried_here():
    tried = Path(__file__).read_text()
    assert [what for what in sorted(set().union(*WHATS_AT.values())) if what not in tried] == []


# --- the daemon's socket, inside the test ---


async def test_a_daemon_inside_the_test_runs_what_is_added_over_its_socket(bench: Bench):
    where = bench.home.path / "app-server-control" / "app-server-control.sock"
    async with control_socket(bench.home) as path, socket_client(path) as owner, socket_client(path) as bridge:
        assert where.resolve() == path
        for client in (owner, bridge):
            await client.initialize()
        await owner.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        await bridge.result(ADD, bench.add("key"))
        await bridge.wait_said(bench.thread, key="key")
    assert not where.is_symlink() and not path.exists()


async def test_a_daemon_process_killed_with_an_add_in_flight_ends_the_connection(bench: Bench):
    set_faults(bench.home, f"after_effect:{ADD}:die")
    link = bench.home.path / "app-server-control" / "app-server-control.sock"
    async with bench.server("--listen", "unix://"):
        while not link.is_symlink():  # noqa: ASYNC110 - the server is another process
            await anyio.sleep(0.01)
        await listening(link.resolve())
        async with socket_client(link.resolve()) as client:
            await client.initialize()
            await client.send(ADD, bench.add("key"))
            await client.ended.wait()
    assert bench.queued() == ["key"]


# --- the differences that are written down ---


def test_each_divergence_is_shown_by_a_test_here():
    here = Path(__file__).read_text()
    assert [each.shown_by for each in DIVERGENCES if f"def {each.shown_by}(" not in here] == []


async def initialized(client: RawClient) -> RawClient:
    await client.initialize()
    return client


async def test_a_method_that_the_fake_does_not_play_says_so(bench: Bench):
    not_played = next(name for name in CURRENT.methods if name not in METHODS)
    async with bench.server() as server:
        client = await initialized(server)
        said = await client.error(not_played, {})
    assert said == (-32603, f"the fake app-server does not play {not_played}")


async def test_params_in_an_array_are_refused(bench: Bench):
    async with bench.server() as server:
        client = await initialized(server)
        said = await client.error("thread/queue/list", [bench.thread])
    assert said == (-32600, "Invalid request: invalid type: sequence, expected a map")


async def test_of_a_broken_configuration_only_an_unclosed_table_is_noticed(bench: Bench):
    for mistake, warnings in (("model = \n", 1), ("[table\n", 2)):
        (bench.home.path / "config.toml").write_text(mistake)
        async with bench.server() as server:
            client = await initialized(server)
            await client.ask("bogus", {})
            assert client.notified().count("configWarning") == warnings


async def test_an_ephemeral_thread_is_an_ordinary_one(bench: Bench):
    async with bench.server() as server:
        client = await initialized(server)
        thread = await client.new_thread(bench.root, ephemeral=True)
        assert await client.queued(thread) == []


async def test_resuming_tells_nothing_of_past_usage(bench: Bench):
    async with bench.server() as server:
        client = await initialized(server)
        await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
        await client.ask("bogus", {})
        assert "thread/tokenUsage/updated" not in client.notified()


async def test_a_listening_server_ends_on_the_first_sigterm(bench: Bench):
    path = bench.root / "s.sock"
    async with bench.server("--listen", f"unix://{path}") as server:
        await listening(path)
        async with socket_client(path) as client:
            await client.initialize()
            await client.result("thread/resume", {"threadId": bench.thread, "excludeTurns": True})
            await client.start_turn(bench.thread, "[[hang]]")
            assert server.process is not None
            server.process.terminate()
            assert await server.process.wait() == 0
            await client.ended.wait()
