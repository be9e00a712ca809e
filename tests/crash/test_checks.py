"""The look from the outside sees what it is there for: each broken promise, planted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from channel.messages import key_of
from fakes.codex_store import text_input
from tests.crash.checks import judge
from tests.crash.world import CLAUDE_ROLE, CODEX_ROLE, World, crash_world
from tests.crash.zygote import Zygote

SHA = "0" * 64


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with crash_world(tmp_path / "world", cast(Zygote, None)) as world:  # no process is started
        yield world


async def settle(world: World, message_id: int, state: str, policy: str) -> None:
    """Write an end into the file, with a history that the tables allow."""
    steps = {
        "seen": ["hand_over_recorded", "key_in_items_same_text" if policy == "queue" else "in_transcript"],
        "accepted": ["hand_over_recorded", "answered"],
    }
    states = {"seen": ["handed_over", "seen"], "accepted": ["handed_over", "accepted"]}
    async with world.view.channel.database.transaction() as transaction:
        for event, after in zip(steps[state], states[state], strict=True):
            await transaction.run(
                f"UPDATE deliveries SET state = '{after}', last_event = '{event}', policy = '{policy}', address = 'a', "
                f"text_sha256 = '{SHA}', term = 1 WHERE message_id = {message_id}"
            )


async def add(world: World, message_id: int, text: str) -> None:
    channel_id = await world.view.channel.membership.channel_id()
    world.home.add_row(world.thread, text_input(f"head\norigin\n{text}"), key_of(str(channel_id), message_id))


def show(world: World, *lines: str) -> None:
    world.claude._lines += lines


async def test_what_is_as_it_should_be_is_called_so(world: World) -> None:
    codex, claude = await world.send("one", CODEX_ROLE), await world.send("two", CLAUDE_ROLE)
    await add(world, codex, "one")
    await settle(world, codex, "accepted", "queue")
    show(world, f"{claude} hall sender", "|two")
    await settle(world, claude, "seen", "monitor")
    verdict = judge(world)
    assert verdict.holds, verdict
    assert verdict.delivered == 2


async def test_a_key_that_is_in_the_thread_twice_is_seen(world: World) -> None:
    sent = await world.send("one", CODEX_ROLE)
    await add(world, sent, "one")
    await add(world, sent, "one")
    await settle(world, sent, "accepted", "queue")
    assert judge(world).twice == 1


async def test_a_message_that_is_called_accepted_and_is_nowhere_is_seen(world: World) -> None:
    await settle(world, await world.send("one", CODEX_ROLE), "accepted", "queue")
    assert judge(world).lost == 1


async def test_a_message_that_was_never_delivered_is_seen(world: World) -> None:
    await world.send("one", CODEX_ROLE)
    verdict = judge(world)
    assert (verdict.lost, verdict.holds) == (1, False)


async def test_a_message_whose_sender_was_told_that_it_is_stored_and_which_is_not_is_seen(world: World) -> None:
    world.owe(17, "one", [CODEX_ROLE])
    assert not judge(world).holds


async def test_a_message_shown_as_new_twice_is_seen_and_a_marked_repeat_is_none(world: World) -> None:
    sent = await world.send("one", CLAUDE_ROLE)
    await settle(world, sent, "seen", "monitor")
    show(world, f"{sent} hall sender", "|one", f"{sent} hall sender repeat=1", "|one")
    assert (judge(world).twice, judge(world).repeated) == (0, 1)
    show(world, f"{sent} hall sender", "|one")
    assert judge(world).twice == 1


@pytest.mark.parametrize("shown", ["|on", "|another"])
async def test_another_text_is_seen_also_one_that_was_cut_off(world: World, shown: str) -> None:
    sent = await world.send("one", CLAUDE_ROLE)
    await settle(world, sent, "seen", "monitor")
    show(world, f"{sent} hall sender", shown)
    assert not judge(world).holds


async def test_one_that_was_cut_off_and_then_given_to_the_thread_that_took_the_role_over_is_none(world: World) -> None:
    sent = await world.send("one", CODEX_ROLE)
    show(world, f"{sent} hall sender", "|on")
    await add(world, sent, "one")
    await settle(world, sent, "accepted", "queue")
    assert judge(world).holds


async def test_another_order_is_seen(world: World) -> None:
    sent = [await world.send(text, CODEX_ROLE) for text in ("one", "two")]
    for message_id, text in zip(reversed(sent), ("two", "one"), strict=True):
        await add(world, message_id, text)
        await settle(world, message_id, "accepted", "queue")
    assert [each.partition(" ")[0] for each in judge(world).broken] == ["added"]


async def test_a_transition_that_no_table_holds_is_seen(world: World) -> None:
    sent = await world.send("one", CODEX_ROLE)
    await add(world, sent, "one")
    await settle(world, sent, "accepted", "queue")
    async with world.view.channel.database.transaction() as transaction:
        await transaction.run("UPDATE deliveries SET state = 'pending', last_event = 'answer_lost'")
        await transaction.run("UPDATE deliveries SET state = 'accepted', last_event = 'answered'")
    assert not judge(world).holds
