"""Opening an app-server by a plan: fall over to the next only while nothing was at stake."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harness_adapters.codex.app_server import AppServer, Opener, open_app_server
from harness_adapters.codex.thread_queue import LateAdd
from harness_adapters.codex.transport import LineTransport, TransportUnavailable
from harness_adapters.codex.wire import Added
from tests.unit.harness_adapters.codex.played_server import PlayedServer
from waiters.background import background_tasks

SOON = 5.0
USER_AGENT = "agent-channel/0.171.0 (Debian 12.0.0; x86_64) unknown (agent-channel; 0.1.0)"


class Plan:
    """Openers for played servers, each of which answers `initialize` in its way; what was asked is kept."""

    def __init__(self) -> None:
        self.openers: list[Opener] = []
        self.left: list[str] = []
        self.asked: dict[str, list[dict[str, Any]]] = {}
        self.servers: dict[str, PlayedServer] = {}

    def missing(self, name: str) -> None:
        @asynccontextmanager
        async def open_it() -> AsyncIterator[LineTransport]:
            raise TransportUnavailable(f"no {name}")
            yield

        self.openers.append(Opener(name, open_it))

    def answering(self, name: str, answer: object) -> None:
        """`answer` is the result of `initialize`, a pair (code, message), or None for hanging up."""

        @asynccontextmanager
        async def open_it() -> AsyncIterator[LineTransport]:
            server = self.servers[name] = PlayedServer()
            async with background_tasks() as tasks:
                tasks.start_soon(self._initialize, server, name, answer)
                try:
                    yield server
                finally:
                    self.left.append(name)
                    server.clear_away()

        self.openers.append(Opener(name, open_it))

    async def _initialize(self, server: PlayedServer, name: str, answer: object) -> None:
        request = await server.asked()
        self.asked[name] = [request]
        if answer is None:
            server.hang_up()
        elif isinstance(answer, tuple):
            server.refuse(request, *answer)
        else:
            server.answer(request, answer)
            with suppress(anyio.ClosedResourceError):  # where it was left without a further word
                self.asked[name].append(await server.asked())


@asynccontextmanager
async def opened(plan: Plan, late: list[LateAdd]) -> AsyncIterator[AppServer]:
    with anyio.fail_after(SOON):
        async with open_app_server(plan.openers, late.append) as server:
            yield server


async def test_it_is_initialized_with_the_experimental_api_before_it_is_handed_out() -> None:
    plan = Plan()
    plan.answering("child", {"userAgent": USER_AGENT, "codexHome": "/home"})
    async with opened(plan, []) as server:
        assert (server.transport, server.codex_version) == ("child", "0.171.0")
        assert not server.closed
    request, notification = plan.asked["child"]
    assert request["method"] == "initialize"
    assert request["params"]["clientInfo"]["name"] == "agent-channel"
    assert request["params"]["capabilities"] == {"experimentalApi": True}
    assert notification == {"method": "initialized"}
    assert plan.left == ["child"]


@pytest.mark.parametrize(("user_agent", "version"), [("codex-tui/0.172.0-alpha.1 x", "0.172.0-alpha.1"), ("odd", None)])
async def test_the_version_is_read_whoever_was_the_servers_first_client(user_agent: str, version: str | None) -> None:
    plan = Plan()
    plan.answering("daemon", {"userAgent": user_agent})
    async with opened(plan, []) as server:
        assert server.codex_version == version


async def test_a_server_that_does_not_tell_its_version_is_used_all_the_same() -> None:
    plan = Plan()
    plan.answering("child", {})
    async with opened(plan, []) as server:
        assert server.codex_version is None


@pytest.mark.fault("F51")
@pytest.mark.parametrize("first", ["missing", "hangs up", "refuses", "answers oddly"])
async def test_the_next_of_the_plan_is_used_where_the_first_fails_before_it_is_initialized(
    first: str,
) -> None:
    plan = Plan()
    if first == "missing":
        plan.missing("daemon")
    else:
        answers = {"hangs up": None, "refuses": (-32600, "no"), "answers oddly": [1]}
        plan.answering("daemon", answers[first])
    plan.answering("child", {"userAgent": USER_AGENT})
    async with opened(plan, []) as server:
        assert server.transport == "child"
        assert plan.left == ([] if first == "missing" else ["daemon"])


@pytest.mark.fault("F51")
async def test_where_none_can_be_reached_each_reason_is_told() -> None:
    plan = Plan()
    plan.missing("daemon")
    plan.answering("child", None)
    with pytest.raises(TransportUnavailable, match=r"daemon: no daemon; child: initialize was written.*gone"):
        async with opened(plan, []):
            pass


async def test_an_empty_plan_reaches_nothing() -> None:
    with pytest.raises(TransportUnavailable, match="no way to reach"):
        async with opened(Plan(), []):
            pass


async def test_an_error_of_the_body_comes_out_as_itself_and_nothing_else_is_tried() -> None:
    """Even one that would mean the next transport at the opening."""
    plan = Plan()
    plan.answering("daemon", {})
    plan.answering("child", {})
    with pytest.raises(TransportUnavailable, match="of the body"):
        async with opened(plan, []):
            raise TransportUnavailable("of the body")
    assert list(plan.asked) == ["daemon"]


async def test_the_answer_to_an_add_whose_caller_was_cancelled_is_told() -> None:
    plan = Plan()
    plan.answering("child", {})
    late: list[LateAdd] = []
    async with opened(plan, late) as server:
        played = plan.servers["child"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.queue.add, "thread", "key", "text")
            request = await played.asked()
            tasks.cancel_scope.cancel()
        played.answer(request, {"queuedSubmission": {"id": "row"}})
        while not late:
            await checkpoint()
    assert late == [LateAdd("thread", "key", Added("row"), None)]
