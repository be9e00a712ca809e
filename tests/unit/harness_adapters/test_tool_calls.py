"""What a call answers when the store fails it after its work is done: an error would say that nothing was stored."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from channel.errors import ChannelError, SchemaTooNew, StoreBusy, StoreMoved
from channel.membership import Caller
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel, open_channel
from harness_adapters.tool_calls import Answer, ToolCalls

TROUBLES = [StoreBusy(), StoreMoved("channel.db"), SchemaTooNew(9, 3)]


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[Channel]:
    async with open_channel(tmp_path / "there" / "channel.db", durable=False) as channel:
        yield channel


@pytest.fixture
def calls(channel: Channel) -> ToolCalls:
    return ToolCalls(channel, Adoption(channel.membership, channel.deliveries, channel.supervisor, channel.clock))


def session(channel: Channel, address: str, harness: str = "claude") -> Caller:
    process = channel.process.to_text()
    if harness == "codex":
        return Caller(address, harness, process, process, thread_id=address, codex_home="/none", codex_path="/none")
    return Caller(address, harness, process, process)


def fail(monkeypatch: pytest.MonkeyPatch, channel: Channel, trouble: ChannelError) -> None:
    """From now on nothing can be looked up; what writes still works."""

    async def refuse(*_arguments: Any, **_names: Any) -> NoReturn:
        raise trouble

    for of, name in (
        (channel.leases, "is_held"),
        (channel.leases, "detail"),
        (channel.membership, "roles_in"),
        (channel.membership, "roles_of"),
        (channel.deliveries, "unserved_addresses"),
    ):
        monkeypatch.setattr(of, name, refuse)


@pytest.mark.fault("F39")
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: type(trouble).__name__)
class TestAfterItsWork:
    @pytest.mark.parametrize("harness", ["claude", "codex"])
    async def test_a_message_that_is_stored_has_its_id(
        self,
        monkeypatch: pytest.MonkeyPatch,
        channel: Channel,
        calls: ToolCalls,
        trouble: ChannelError,
        harness: str,
    ) -> None:
        planner = session(channel, "one")
        await calls.join(planner, {"room": "hall", "name": "planner"})
        await channel.membership.join(session(channel, "two", harness), "hall", "reviewer", None)
        fail(monkeypatch, channel, trouble)

        answer = await calls.send(planner, {"text": "hello", "to": "reviewer"})

        assert [row["message_id"] for row in await channel.database.read("SELECT * FROM messages")] == [answer["id"]]
        assert answer["waiter_detail"].startswith("store unavailable: this call is done")

    async def test_join_rename_and_leave_say_what_they_did(
        self, monkeypatch: pytest.MonkeyPatch, channel: Channel, calls: ToolCalls, trouble: ChannelError
    ) -> None:
        planner = session(channel, "one")
        fail(monkeypatch, channel, trouble)

        async def names() -> list[str]:
            rows = await channel.database.read("SELECT name FROM roles WHERE ended_at_ms IS NULL")
            return [row["name"] for row in rows]

        joined: Answer = await calls.join(planner, {"room": "hall", "name": "planner"})
        assert (joined["name"], await names()) == ("planner", ["planner"])
        renamed = await calls.rename(planner, {"name": "lead"})
        assert (renamed["was"], await names()) == ("planner", ["lead"])
        left = await calls.leave(planner, {})
        assert (left["left"], await names()) == ({"hall": "lead"}, [])
