"""From a text to a message with all its deliveries."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from channel import sending
from channel.errors import BadText, NobodyElse, SentToSelf, UnknownRole
from channel.names import TEXT_CHARACTERS_MAX
from channel.presence import ABSENT_MS_BEFORE_SKIPPED
from channel.wakeups import open_bell, ring
from fakes.clock import FakeIds
from tests.unit.world import Channel, World, claude

ANN, BOB, CARL = claude("ann"), claude("bob"), claude("carl")
DAY_S = 24 * 3_600


@pytest.fixture
async def hall(channel: Channel) -> Channel:
    for caller, name in ((ANN, "boss"), (BOB, "worker"), (CARL, "helper")):
        await channel.join(caller, name)
    return channel


async def stored(channel: Channel) -> list[int]:
    return [row[0] for row in await channel.database.read("SELECT message_id FROM messages")]


async def test_a_message_is_stored_with_one_delivery_for_each_that_was_named(hall: Channel) -> None:
    sent = await hall.sending.send("ann", "hello", ["worker", "helper", "worker"], None)

    assert [view.name for view in sent.recipients] == ["worker", "helper"]
    message = await hall.deliveries.message(sent.message_id)
    assert (message.sender, message.room, message.text) == ("boss", "hall", "hello")
    assert message.created_at_ms == hall.clock.now_ms()
    assert await hall.pending_ids("bob") == await hall.pending_ids("carl") == [sent.message_id]


@pytest.mark.parametrize("to", ["worker", None])
async def test_the_recipients_are_rung_once_it_is_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hall: Channel, to: str | None
) -> None:
    async with open_bell(tmp_path, "p1", FakeIds()) as bell:
        await hall.leases.take("bob", "p1", str(bell.path))
        await hall.leases.take("carl", "p2", str(tmp_path / "nobody listens"))
        stored_then: list[int] = []

        def look_and_ring(bells: Iterable[str | None]) -> None:
            with closing(sqlite3.connect(hall.database.path)) as other:
                stored_then.extend(row[0] for row in other.execute("SELECT message_id FROM messages"))
            ring(bells)

        monkeypatch.setattr(sending, "ring", look_and_ring)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bell.wait)
                sent = await hall.send("ann", to)

    assert stored_then == await hall.pending_ids("bob") == [sent.message_id]


async def test_a_message_to_all_reaches_every_other_role_live_or_not(world: World, hall: Channel) -> None:
    world.dead.add(CARL.process)

    sent = await hall.send("ann", None)

    assert [(view.name, view.connected) for view in sent.recipients] == [("worker", True), ("helper", False)]
    assert await hall.pending_ids("ann") == []


async def test_a_message_to_all_is_stored_for_all_or_for_none(hall: Channel) -> None:
    """A trigger stands for a fault in the middle of the deliveries."""
    await hall.database.read(
        "CREATE TEMP TRIGGER fail BEFORE INSERT ON deliveries WHEN NEW.role_id = 3 BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        await hall.send("ann", None)

    assert await stored(hall) == []
    assert await hall.pending_ids("bob") == []


@pytest.mark.fault("F4")
async def test_a_send_to_a_role_that_never_existed_names_the_roles_there_are_and_stores_nothing(hall: Channel) -> None:
    with pytest.raises(UnknownRole, match=r"no role 'nobody'. The roles there are: worker, helper. Nothing was sent"):
        await hall.sending.send("ann", "hello", ["worker", "nobody"], None)

    assert await stored(hall) == []
    assert await hall.pending_ids("bob") == []


async def test_a_send_to_oneself_is_an_error(hall: Channel) -> None:
    with pytest.raises(SentToSelf, match="'boss' is this session's own role"):
        await hall.sending.send("ann", "hello", ["worker", "boss"], None)
    assert await stored(hall) == []


async def test_a_message_to_all_in_an_empty_room_says_that_nobody_would_get_it(channel: Channel) -> None:
    await channel.join(ANN, "boss")

    with pytest.raises(NobodyElse, match="no other role has joined it"):
        await channel.send("ann", None)
    assert await stored(channel) == []


@pytest.mark.fault("F13")
async def test_a_role_offline_for_over_seven_days_is_skipped_and_named_but_can_be_sent_to(
    world: World, hall: Channel
) -> None:
    world.clock.advance(8 * DAY_S)
    world.dead.add(CARL.process)
    await hall.join(BOB, "worker")

    sent = await hall.send("ann", None)

    assert [view.name for view in sent.recipients] == ["worker"]
    assert [view.name for view in sent.skipped] == ["helper"]
    assert [view.name for view in (await hall.send("ann", "helper")).recipients] == ["helper"]


@pytest.mark.fault("F8")
async def test_a_session_that_lives_is_never_skipped_however_long_it_is_silent(world: World, hall: Channel) -> None:
    world.clock.advance(400 * DAY_S)

    assert [view.name for view in (await hall.send("ann", None)).recipients] == ["worker", "helper"]


async def test_seven_days_are_not_over_seven_days(world: World, hall: Channel) -> None:
    world.dead |= {BOB.process, CARL.process}
    world.clock.advance(ABSENT_MS_BEFORE_SKIPPED / 1_000)
    assert len((await hall.send("ann", None)).recipients) == 2

    world.clock.advance(1)
    with pytest.raises(NobodyElse, match=r"\(worker, helper\) have been offline for over 7 days"):
        await hall.send("ann", None)


@pytest.mark.fault("F44")
async def test_half_of_a_surrogate_pair_is_refused_and_nothing_is_stored(hall: Channel) -> None:
    with pytest.raises(BadText, match="surrogate"):
        await hall.send("ann", "worker", "broken \ud83d here")
    assert await stored(hall) == []


@pytest.mark.fault("F44")
@pytest.mark.parametrize(
    "text", ["nul \0 in it", "\x1b[31m\r\u0085\u2028\u202e", "👩\u200d👩\u200d👧\U0010ffff", "  \n\n\tx \n"]
)
async def test_any_other_text_is_stored_exactly(hall: Channel, text: str) -> None:
    sent = await hall.send("ann", "worker", text)

    assert (await hall.deliveries.message(sent.message_id)).text == text
    assert (await hall.pending("bob")).message.text == text


@pytest.mark.fault("F5")
async def test_the_longest_text_is_stored_whole(hall: Channel) -> None:
    text = "é👍" * (TEXT_CHARACTERS_MAX // 2)

    await hall.send("ann", "worker", text)

    assert (await hall.pending("bob")).message.text == text


async def test_message_ids_ascend_and_are_never_used_again(hall: Channel) -> None:
    first = (await hall.send("ann", "worker")).message_id
    async with hall.database.transaction() as transaction:
        for table in ("delivery_events", "deliveries", "messages"):
            await transaction.run(f"DELETE FROM {table}")

    assert (await hall.send("ann", "worker")).message_id == first + 1


@pytest.mark.fault("F13")
async def test_a_recipient_is_offline_since_its_waiter_stopped_or_since_it_joined(world: World, hall: Channel) -> None:
    joined_ms = world.clock.now_ms()
    world.clock.advance(100)
    (worker,) = (await hall.send("ann", "worker")).recipients
    assert (worker.waiter_active, worker.offline_since_ms) == (False, joined_ms)

    lease = await hall.leases.take("bob", "streamer", "/bells/b")
    (worker,) = (await hall.send("ann", "worker")).recipients
    assert (worker.waiter_active, worker.offline_since_ms, worker.bell) == (True, None, "/bells/b")

    world.clock.advance(5)
    await hall.leases.release(lease)
    world.clock.advance(50)
    (worker,) = (await hall.send("ann", "worker")).recipients
    assert (worker.waiter_active, worker.offline_since_ms, worker.bell) == (False, joined_ms + 105_000, "")
