"""The Codex client over app-servers that run: the fake in its own process, and the real Codex, alike.

The peer, the transports and the typed calls together; what each rule of the server is, the contract suite
says. What only the fake can be made to do stands at the end.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from fakes.codex_app_server import write_executable
from fakes.codex_store import CodexHome
from fakes.codex_thread import ThreadOwner, new_thread
from fakes.faults import set_faults
from harness_adapters.codex import wire
from harness_adapters.codex.app_server import AppServer, Opener, open_app_server
from harness_adapters.codex.child import open_child
from harness_adapters.codex.daemon import open_daemon
from harness_adapters.codex.jsonrpc_peer import AnswerLost, AnswerNotUnderstood, RequestNotWritten
from harness_adapters.codex.refusals import (
    QueueApiUnsupported,
    QueueFull,
    TextTooLarge,
    ThreadArchived,
    UnclassifiedRefusal,
    UnknownThread,
)
from harness_adapters.codex.thread_queue import LateAdd
from harness_adapters.codex.transport import TransportUnavailable
from harness_adapters.codex.wire import METHODS_EVER_SENT, QueuedSubmission
from tests.contract.app_server_client import RawClient
from tests.contract.app_servers import AppServers, app_servers

pytestmark = pytest.mark.timeout(90)

SOON = 60.0
NOBODY = "01a22c1e-42d9-7ab1-ac8d-cd31aca2b89b"
TEXTS = [
    "",
    "/compact",
    "a\r\n\tb  \n\n",
    "nul\x00 esc\x1b[31m \x85\u2028\u202e",
    "\U0001f468\u200d\U0001f469 \\ud800",
    "x" * 1_048_576,
]


def unexpected(late: LateAdd) -> None:
    raise AssertionError(late)


@dataclass
class Served:
    """App-servers of one kind, and the product's client for them."""

    servers: AppServers
    codex: Path

    def client(self, on_late_add: Callable[[LateAdd], None] = unexpected) -> AbstractAsyncContextManager[AppServer]:
        child = partial(open_child, self.codex, self.servers.codex_home, self.servers.environment)
        return open_app_server([Opener("child", child)], on_late_add)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    with anyio.fail_after(SOON):
        async with app_servers(request.param, tmp_path) as servers:
            fake = request.param == "fake"
            codex = write_executable(tmp_path / "codex") if fake else Path(servers.command[0])
            yield Served(servers, codex)


async def load(owner: RawClient, thread: str) -> None:
    await owner.result("thread/resume", {"threadId": thread})


async def test_a_child_tells_its_version_and_ends_with_its_use(served: Served) -> None:
    async with served.client() as client:
        assert client.transport == "child"
        assert client.codex_version == "0.171.0"
        assert not client.closed
    assert client.closed


async def test_each_text_comes_back_exactly_from_the_queue_and_from_the_items(served: Served) -> None:
    thread = await served.servers.thread()
    async with served.client() as client:
        rows = []
        for number, text in enumerate(TEXTS):
            added = await client.queue.add(thread, f"key-{number}", text)
            rows.append(QueuedSubmission(added.submission_id, f"key-{number}", text))
        assert await client.queue.queued(thread) == rows
        assert await client.queue.probe(thread) == len(rows)
        assert all(m.key is None for m in (await client.queue.history(thread, 0)).user_messages)
        async with served.servers.client() as owner:
            await load(owner, thread)
            await owner.wait_said(thread, key=f"key-{len(TEXTS) - 1}")
        history = await client.queue.history(thread, 0)
        assert history.complete
        found = {message.key: message.text for message in history.user_messages if message.key is not None}
        assert found == {f"key-{number}": text for number, text in enumerate(TEXTS)}
        assert history.user_messages[0].key == f"key-{len(TEXTS) - 1}"
        assert all(message.started_at_ms is not None for message in history.user_messages)


@pytest.mark.parametrize("mode", ["paginated", "legacy"])
async def test_both_kinds_of_history_are_followed_over_their_pages(
    served: Served, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "PAGE_LIMIT", 2)
    async with served.servers.client() as owner:
        thread = await owner.new_thread(served.servers.project, historyMode=mode)
        for number in range(5):
            await owner.turn_completed(await owner.start_turn(thread, f"text {number}", f"key-{number}"))
        await owner.close_input()
    async with served.client() as client:
        whole = await client.queue.history(thread, 0)
    newest_first = [f"key-{number}" for number in reversed(range(5))]
    assert [message.key for message in whole.user_messages] == [*newest_first, None]
    assert whole.complete


async def test_an_unknown_thread_is_unknown_to_every_call(served: Served) -> None:
    async with served.client() as client:
        for thread in (NOBODY, "no-uuid"):
            with pytest.raises(UnknownThread):
                await client.queue.add(thread, "key", "text")
            with pytest.raises(UnknownThread):
                await client.queue.probe(thread)
            with pytest.raises(UnknownThread):
                await client.queue.history(thread, 0)


async def test_a_full_queue_and_a_text_too_large_are_refused_without_effect(served: Served) -> None:
    thread = await served.servers.thread()
    async with served.client() as client:
        with pytest.raises(TextTooLarge):
            await client.queue.add(thread, "large", "x" * 1_048_577)
        for number in range(100):
            await client.queue.add(thread, f"key-{number}", "text")
        with pytest.raises(QueueFull):
            await client.queue.add(thread, "one too many", "text")
        assert [row.key for row in await client.queue.queued(thread)] == [f"key-{n}" for n in range(100)]


async def test_an_archived_thread_is_refused_and_its_history_still_read(served: Served) -> None:
    thread = await served.servers.thread()
    async with served.servers.client() as owner:
        await owner.result("thread/archive", {"threadId": thread})
    async with served.client() as client:
        with pytest.raises(ThreadArchived, match="unarchive"):
            await client.queue.add(thread, "key", "text")
        with pytest.raises(ThreadArchived):
            await client.queue.probe(thread)
        assert len((await client.queue.history(thread, 0)).user_messages) == 1


async def test_the_daemons_socket_serves_the_same_calls(served: Served) -> None:
    thread = await served.servers.thread()
    async with served.servers.socket() as path:
        plan = [Opener("daemon", partial(open_daemon, path))]
        async with open_app_server(plan, unexpected) as client:
            text = "x" * 1_048_576
            added = await client.queue.add(thread, "key", text)
            assert await client.queue.queued(thread) == [QueuedSubmission(added.submission_id, "key", text)]
            with pytest.raises(UnknownThread):
                await client.queue.probe(NOBODY)
            assert client.transport == "daemon"
            assert client.codex_version == "0.171.0"


async def test_adds_that_overlap_are_each_answered_under_their_own_key(served: Served) -> None:
    thread = await served.servers.thread()
    ids: dict[str, str] = {}

    async def add(client: AppServer, key: str) -> None:
        ids[key] = (await client.queue.add(thread, key, f"text of {key}")).submission_id

    async with served.client() as client:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(add, client, f"key-{number}")
        rows = await client.queue.queued(thread)
    assert {row.key: row.submission_id for row in rows} == ids


@pytest.mark.fault("F27")
async def test_a_missing_codex_home_is_unavailable_with_codexs_own_words(served: Served) -> None:
    missing = served.servers.codex_home / "missing"
    child = partial(open_child, served.codex, missing, served.servers.environment)
    with pytest.raises(TransportUnavailable, match="ended with exit status 1: Error: CODEX_HOME points to"):
        async with open_app_server([Opener("child", child)], unexpected):
            pass


# --- what only the fake can be made to do ---


@pytest.fixture
async def faked(tmp_path: Path) -> AsyncIterator[tuple[Served, CodexHome, str]]:
    """The fake, its home, and a thread in it that nobody has loaded."""
    with anyio.fail_after(SOON):
        async with app_servers("fake", tmp_path) as servers:
            home = CodexHome(servers.codex_home)
            yield Served(servers, write_executable(tmp_path / "codex")), home, new_thread(home)
            home.close()


@pytest.mark.fault("F22")
@pytest.mark.parametrize(("place", "rows"), [("before_effect", 0), ("after_effect", 1)])
@pytest.mark.parametrize("death", ["die", "exit"])
async def test_a_server_that_dies_with_the_add_leaves_its_answer_lost_whatever_became_of_the_row(
    faked: tuple[Served, CodexHome, str], place: str, rows: int, death: str
) -> None:
    served, home, thread = faked
    set_faults(home, f"{place}:thread/queue/add:{death}")
    async with served.client() as client:
        with pytest.raises(AnswerLost, match="was written, but not answered"):
            await client.queue.add(thread, "key", "text")
        assert client.closed
        with pytest.raises(RequestNotWritten):
            await client.queue.add(thread, "key", "text")
    assert len(home.rows(thread)) == rows


@pytest.mark.fault("F22")
async def test_an_answer_after_the_caller_was_cancelled_is_told_as_a_late_add(
    faked: tuple[Served, CodexHome, str],
) -> None:
    served, home, thread = faked
    set_faults(home, "after_effect:thread/queue/add:delay=late")
    late, told = list[LateAdd](), anyio.Event()

    def tell(add: LateAdd) -> None:
        late.append(add)
        told.set()

    async with served.client(tell) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.queue.add, thread, "key", "text")
            await home.signals.wait("reached-late")
            tasks.cancel_scope.cancel()
        assert late == []
        home.signals.set("late")
        await told.wait()
    (add,) = late
    (row,) = home.rows(thread)
    assert add.added is not None
    assert (add.thread_id, add.key, add.added.submission_id) == (thread, "key", row.id)


@pytest.mark.fault("F25")
@pytest.mark.parametrize(
    "fault",
    [
        "at_start:start:banner",
        "before_effect:thread/queue/add:banner=[1]",
        "after_effect:thread/queue/add:extra_fields",
        "after_effect:thread/queue/add:missing_fields;after_effect:thread/queue/list:missing_fields",
    ],
)
async def test_what_is_odd_but_readable_is_read(faked: tuple[Served, CodexHome, str], fault: str) -> None:
    served, home, thread = faked
    set_faults(home, fault)
    async with served.client() as client:
        added = await client.queue.add(thread, "key", "text")
        assert await client.queue.queued(thread) == [QueuedSubmission(added.submission_id, "key", "text")]


@pytest.mark.fault("F25")
async def test_an_answer_that_is_no_object_is_no_proof_of_the_add(
    faked: tuple[Served, CodexHome, str],
) -> None:
    served, home, thread = faked
    set_faults(home, "after_effect:thread/queue/add:non_object")
    async with served.client() as client:
        with pytest.raises(AnswerNotUnderstood):
            await client.queue.add(thread, "key", "text")
        assert len(await client.queue.queued(thread)) == 1


async def test_an_error_after_the_effect_proves_nothing(faked: tuple[Served, CodexHome, str]) -> None:
    served, home, thread = faked
    set_faults(home, "after_effect:thread/queue/add:error")
    async with served.client() as client:
        with pytest.raises(UnclassifiedRefusal):
            await client.queue.add(thread, "key", "text")
        assert len(await client.queue.queued(thread)) == 1


@pytest.mark.fault("F26")
@pytest.mark.parametrize("question", ["ask_approval", "ask_unknown"])
async def test_what_the_server_asks_is_refused_and_the_add_goes_on(
    faked: tuple[Served, CodexHome, str], question: str
) -> None:
    served, home, thread = faked
    set_faults(home, f"before_effect:thread/queue/add:{question}")
    async with served.client() as client:
        await client.queue.add(thread, "key", "text")
        await client.queue.probe(thread)  # written after the refusal, so that one has been read
    (answer,) = [entry for entry in home.received() if entry["method"] is None]
    assert answer["answers"] is not None
    assert answer["error"]["code"] == -32601


@pytest.mark.fault("F51")
@pytest.mark.parametrize("fault", ["at_start:start:exit", "before_effect:initialize:die"])
async def test_a_server_that_dies_before_it_is_initialized_is_unavailable(
    faked: tuple[Served, CodexHome, str], fault: str
) -> None:
    served, home, _ = faked
    set_faults(home, fault)
    with pytest.raises(TransportUnavailable, match=r"the codex app-server (ended|was ended)"):
        async with served.client():
            pass


async def test_a_server_without_the_queue_says_so_at_the_probe(
    faked: tuple[Served, CodexHome, str], tmp_path: Path
) -> None:
    served, _, thread = faked
    served.codex = write_executable(tmp_path / "old", "--codex-version", "0.120.0")
    async with served.client() as client:
        assert client.codex_version == "0.120.0"
        with pytest.raises(QueueApiUnsupported) as caught:
            await client.queue.probe(thread)
        assert len(str(caught.value)) < 500


@pytest.mark.fault("F20")
async def test_a_key_between_the_queue_and_the_items_is_in_neither_place(
    faked: tuple[Served, CodexHome, str],
) -> None:
    served, home, thread = faked
    async with served.client() as client:
        await client.queue.add(thread, "key", "text")
        with ThreadOwner(home, thread) as owner:
            owner.take_row()
            assert await client.queue.queued(thread) == []
            assert all(m.key != "key" for m in (await client.queue.history(thread, 0)).user_messages)
            owner.record_item()
            assert (await client.queue.history(thread, 0)).user_messages[0].key == "key"
            owner.complete()


@pytest.mark.fault("F23")
async def test_nothing_but_the_listed_methods_reaches_the_server(
    faked: tuple[Served, CodexHome, str],
) -> None:
    served, home, thread = faked
    async with served.client() as client:
        await client.queue.add(thread, "key", "text")
        await client.queue.probe(thread)
        await client.queue.history(thread, 0)
    methods = {entry["method"] for entry in home.received()}
    assert {"thread/queue/add", "thread/queue/list"} <= methods <= METHODS_EVER_SENT
