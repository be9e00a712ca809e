"""A Codex thread's waiter, whole, over the fake app-server: what it does when the other end misbehaves.

Texts, and what is said where nothing can be delivered, are in test_codex_waiter_words.py.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from fakes.codex_app_server import CONTROL_SOCKET, control_socket
from fakes.codex_thread import ThreadOwner, new_thread
from fakes.faults import set_faults
from harness_adapters.codex.wire import METHODS_EVER_SENT
from tests.codex_sessions import delivery_of, events_of
from tests.integration.codex_world import ADD, ITEMS, LIST, RESTS_S, ROLE, World

pytestmark = pytest.mark.timeout(120)


FIRST_LOOK_S = 1


@pytest.mark.fault("F9")
async def test_delivery_waits_for_no_notification_of_a_turn(world: World) -> None:
    set_faults(world.home, "at_start:start#*:silent_turns")
    await world.join()
    sent = await world.send()
    await world.until_state(sent, "accepted")
    with ThreadOwner(world.home, world.thread) as owner:
        owner.run_row()
    await world.until_state(sent, "seen")


@pytest.mark.fault("F12")
async def test_what_is_accepted_and_dropped_is_uncertain_after_the_grace_and_never_added_again(world: World) -> None:
    set_faults(world.home, f"after_answer:{ADD}:lose_row")
    await world.join()
    sent = await world.send()
    accepted = await world.until_state(sent, "accepted")
    uncertain = await world.until_state(sent, "uncertain")
    assert uncertain["changed_at_ms"] - accepted["accepted_at_ms"] >= 30_000
    assert await world.waiter_detail() == f"delivery uncertain: {sent}"
    followed = await world.send("the next one")
    await world.until_state(followed, "accepted")
    world.clock.advance(24 * 3_600)
    looks = world.asked(LIST)

    async def looked_again() -> bool:
        return world.asked(LIST) > looks

    await world.until(looked_again)
    assert (await delivery_of(world.view, sent))["state"] == "uncertain"
    assert world.asked(ADD) == 2
    assert "seen" not in [row["state"] for row in await world.view.deliveries(to=ROLE)]


@pytest.mark.fault("F22")
async def test_a_server_killed_before_or_after_an_adds_effect_adds_nothing_twice_and_loses_nothing_in_silence(
    world: World,
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    places = [dice.choice(["", "before_effect", "after_effect"]) for _ in range(40)]
    set_faults(world.home, ";".join(f"{place}:{ADD}#{n}:die" for n, place in enumerate(places, 1) if place))
    await world.join()
    sent = [await world.send(f"number {number}") for number in range(len(places))]

    async def all_true() -> bool:
        rows = await world.view.deliveries(to=ROLE)
        return [row["state"] for row in rows] == [
            "uncertain" if place == "before_effect" else "accepted" for place in places
        ]

    await world.until(all_true)
    present = [n for n, place in zip(sent, places, strict=True) if place != "before_effect"]
    assert [int(key.rpartition(":")[2]) for key in (row.client_id for row in world.home.rows(world.thread))] == present
    assert max(world.keys().values()) == 1
    assert world.asked(ADD) == len(sent)


@pytest.mark.fault("F23")
async def test_no_method_is_ever_sent_but_those_that_add_and_look(world: World) -> None:
    """A life with everything in it; the fixture holds each test's methods against the list, this one wants all."""
    legacy = new_thread(world.home, history_mode="legacy")
    set_faults(world.home, f"after_effect:{ADD}:die")
    await world.join()
    await world.session(legacy).join("legacy")
    lost = await world.send()
    other = (await world.sender.send("hello", "legacy"))["id"]
    await world.until_state(lost, "accepted")
    await world.until_state(other, "accepted")
    for thread in (world.thread, legacy):
        with ThreadOwner(world.home, thread) as owner:
            owner.run_row()
    await world.until_state(lost, "seen")
    await world.until_state(other, "seen")
    await world.session(legacy).leave()
    await world.session().leave()
    assert {entry["method"] for entry in world.home.received()} == METHODS_EVER_SENT


@pytest.mark.fault("F25")
@pytest.mark.parametrize(
    "faults",
    [
        ";".join(f"after_effect:{method}#*:extra_fields" for method in ("initialize", LIST, ADD, ITEMS)),
        ";".join(f"after_effect:{method}#*:missing_fields" for method in ("initialize", LIST, ADD, ITEMS)),
        "at_start:start#*:banner=Welcome to Codex!",
    ],
    ids=["unknown fields", "without optional fields", "banner"],
)
async def test_what_another_version_may_add_or_leave_out_does_no_harm(world: World, faults: str) -> None:
    set_faults(world.home, faults)
    assert "waiter_detail" not in await world.join()
    sent = await world.send()
    await world.until_state(sent, "accepted")
    with ThreadOwner(world.home, world.thread) as owner:
        owner.run_row()
    await world.until_state(sent, "seen")


@pytest.mark.fault("F25")
@pytest.mark.parametrize("fault", ["non_object", "error=-32603:database is locked", "error=-32601:Method not found"])
async def test_an_answer_to_the_add_that_proves_nothing_is_followed_by_looking_only(world: World, fault: str) -> None:
    set_faults(world.home, f"after_effect:{ADD}:{fault}")
    await world.join()
    sent = await world.send()
    await world.until_state(sent, "accepted")
    assert await events_of(world.view, sent) == ["sent", "hand_over_recorded", "answer_lost", "key_in_queue_same_text"]
    assert world.asked(ADD) == 1


@pytest.mark.fault("F25")
async def test_a_key_that_another_text_holds_is_a_conflict(world: World) -> None:
    set_faults(world.home, f"before_effect:{ADD}:other_text")
    await world.join()
    sent = await world.send()
    await world.until_state(sent, "conflict")
    assert await world.waiter_detail() == f"key conflict: {sent}"


@pytest.mark.fault("F26")
async def test_whatever_the_server_asks_gets_an_error_and_nothing_is_approved(world: World) -> None:
    set_faults(world.home, f"before_effect:{ADD}:ask_approval;after_effect:{LIST}:ask_unknown")
    await world.join()
    sent = await world.send()
    await world.until_state(sent, "accepted")
    answers = [entry for entry in world.home.received() if entry["method"] is None]
    assert {entry["answers"] for entry in answers} == {
        "item/commandExecution/requestApproval",
        "client/neverHeardOf",
    }
    assert all(entry["error"]["code"] == -32601 for entry in answers)


@pytest.mark.fault("F51")
async def test_a_dead_control_socket_is_passed_over_for_a_child(world: World) -> None:
    link = world.home.path / CONTROL_SOCKET
    link.parent.mkdir()
    with TemporaryDirectory() as folder:  # as the real one: a link to a path that is short enough for a socket
        link.symlink_to(Path(folder, "socket"))
        async with await anyio.create_unix_listener(link.readlink()):
            pass
        assert link.exists()
        assert "waiter_detail" not in await world.join()
        await world.until_state(await world.send(), "accepted")


@pytest.mark.fault("F51")
async def test_a_socket_that_dies_before_a_byte_was_written_costs_nothing(world: World) -> None:
    async with control_socket(world.home):
        assert "waiter_detail" not in await world.join()
    sent = await world.send()
    await world.until_state(sent, "accepted")
    assert {"answer_lost", "waiter_died"}.isdisjoint(await events_of(world.view, sent))
    assert world.asked(ADD) == 1


async def test_while_the_server_cannot_be_reached_a_look_up_that_is_due_waits_for_the_rest_to_end(world: World) -> None:
    await world.join()
    await world.until_state(await world.send(), "accepted")
    set_faults(world.home, f"before_effect:{LIST}#*:die")
    await world.clock.until_asleep(FIRST_LOOK_S)
    world.clock.advance(FIRST_LOOK_S)
    await world.clock.until_asleep(RESTS_S[0])  # and does not look at the clock again and again until then
    set_faults(world.home, "")
    await world.until_well()


@pytest.mark.fault("F29")
async def test_a_full_queue_is_tried_again_in_order_as_room_appears(world: World) -> None:
    await world.join()
    sent = [await world.send(f"number {number}") for number in range(103)]
    await world.until_state(sent[-1], "pending", detail="queue full: ")
    said = []
    with ThreadOwner(world.home, world.thread) as owner:

        async def all_said() -> bool:
            if owner.take_row() is not None:
                said.append(owner.running_key)
                owner.record_item()
                owner.complete()
            return len(said) == len(sent)

        await world.until(all_said)
    channel = await world.view.channel.membership.channel_id()
    assert said == [f"agent-channel:{channel}:{message_id}" for message_id in sent]
