"""The waiters of several processes over one file: who serves, who waits, and that no fault of one ends another."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import anyio
import pytest

from channel.delivery_states import Event, Policy
from channel.errors import LeaseHeld, LeaseLost, SchemaTooNew
from channel.wakeups import POLL_S, bells_folder
from fakes.receiver import FakeReceiver, crash, hanging, harness_ended
from tests.unit.waiters.rig import (
    WAIT_S,
    supervisor,
    until,
    until_asleep,
    until_detail,
    until_state,
    until_step,
    written,
)
from tests.unit.world import Channel, World, codex
from waiters.background import background_tasks
from waiters.delivery_loop import IDLE_S_OF_ANOTHERS
from waiters.lease_keeper import RENEW_S
from waiters.receiver import ReceiverEnded, Unavailable
from waiters.supervisor import HELD_ELSEWHERE_S


@pytest.fixture
async def other(world: World, hall: Channel) -> AsyncIterator[Channel]:
    """A second process."""
    async with world.process() as other:
        yield other


async def send(channel: Channel, to: str = "worker") -> int:
    return (await channel.send("ann", to)).message_id


async def until_served(channel: Channel, address: str = "thread") -> None:
    async def held() -> bool:
        return await channel.leases.is_held(address)

    await until(held)


async def test_a_message_of_another_process_wakes_the_waiter_through_its_bell(
    hall: Channel, other: Channel, queue: FakeReceiver
) -> None:
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_asleep(hall, 60)  # idle

        message = await send(other)
        await until_state(other, message, "accepted")
    assert written(queue) == [message]


@pytest.mark.fault("F7")
async def test_a_missed_bell_is_made_good_by_the_slow_look(hall: Channel, other: Channel, queue: FakeReceiver) -> None:
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_asleep(hall, 60, POLL_S, RENEW_S)
        await other.send("ann", "worker")
        hall.clock.advance(POLL_S)
        await until_state(other, 1, "accepted")


@pytest.mark.fault("F7")
async def test_what_waited_before_the_waiter_came_is_delivered_without_new_traffic(
    hall: Channel, queue: FakeReceiver
) -> None:
    for _ in range(3):
        await hall.send("ann", "worker")
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_state(hall, 3, "accepted")
    assert written(queue) == [1, 2, 3]


async def test_the_first_attempt_tells_how_it_went(hall: Channel, queue: FakeReceiver) -> None:
    queue.open_fails.append(Unavailable("app-server unavailable: no codex"))
    async with supervisor(hall, "p1") as waiters:
        assert await waiters.first_attempt("thread") == ""
        waiters.serve("thread", queue)
        with anyio.fail_after(WAIT_S):
            await waiters.first_attempt("thread")
        await until_detail(hall, "app-server unavailable: no codex")


@pytest.mark.fault("F10")
async def test_of_two_processes_that_want_an_address_one_serves_and_the_other_follows_at_its_death(
    world: World, hall: Channel, other: Channel, queue: FakeReceiver
) -> None:
    second = FakeReceiver(Policy.QUEUE)
    async with supervisor(other, "p2") as heirs:
        async with supervisor(hall, "p1") as waiters:
            waiters.serve("thread", queue)
            await until_served(hall)
            heirs.serve("thread", second)
            await until_asleep(hall, HELD_ELSEWHERE_S)
            message = await send(other)
            await until_state(other, message, "accepted")
        assert (written(queue), written(second)) == ([1], [])

        hall.clock.advance(HELD_ELSEWHERE_S)
        message = await send(other)
        await until_state(other, message, "accepted")
    assert (written(queue), written(second)) == ([1], [2])


@pytest.mark.fault("F10")
@pytest.mark.fault("F33")
async def test_of_twenty_that_start_at_once_for_one_session_one_serves_and_the_others_are_told(
    world: World, hall: Channel
) -> None:
    receivers = [FakeReceiver(Policy.MONITOR) for _ in range(20)]
    refused: list[str] = []
    all_refused = anyio.Event()
    for _ in range(5):
        await hall.send("ann", "worker")

    async def contend(number: int) -> None:
        async with world.process() as own, supervisor(own, f"p{number}") as waiters:
            try:
                await waiters.hold("thread", receivers[number])
            except LeaseHeld as held:
                refused.append(held.process)
                if len(refused) == 19:
                    all_refused.set()

    with anyio.fail_after(WAIT_S * 2):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(contend, number)
            await all_refused.wait()
            await until_state(hall, 5, "accepted")
            tasks.cancel_scope.cancel()

    assert len(set(refused)) == 1
    assert sorted(len(receiver.written.items) for receiver in receivers) == [0] * 19 + [5]
    assert not await hall.leases.is_held("thread")  # given back


async def test_a_crash_in_a_receiver_ends_neither_the_process_nor_the_other_waiters(
    hall: Channel, queue: FakeReceiver
) -> None:
    await hall.join(codex("second"), "helper")
    healthy = FakeReceiver(Policy.QUEUE)
    queue.will(crash())
    queue.finds = {1: Event.KEY_IN_NEITHER}
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        waiters.serve("second", healthy)
        await until_asleep(hall, 60, 60)
        await send(hall)
        await until_asleep(hall, 1)  # the failed one rests
        assert "waiter failed: RuntimeError" in await waiters.first_attempt("thread")

        message = await send(hall, "helper")
        await until_state(hall, message, "accepted")

        hall.clock.advance(1)
        await until_state(hall, 1, "uncertain")  # what the crash left in the middle is never given again
        message = await send(hall)
        await until_state(hall, message, "accepted")
    assert written(queue) == [message]
    assert written(healthy) == [2]


async def test_the_end_of_a_harness_ends_its_waiter_only(hall: Channel, queue: FakeReceiver) -> None:
    queue.will(harness_ended())
    async with supervisor(hall, "p1") as waiters:
        await hall.send("ann", "worker")
        waiters.serve("thread", queue)

        async def ended() -> bool:
            return not waiters.serves("thread") and not await hall.leases.is_held("thread")

        await until(ended)


async def test_held_in_the_callers_task_the_end_of_the_harness_comes_out_as_itself(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.open_fails.append(ReceiverEnded())
    with anyio.fail_after(WAIT_S), pytest.raises(ReceiverEnded):
        async with supervisor(hall, "p1") as waiters:
            await waiters.hold("thread", queue)
    assert not await hall.leases.is_held("thread")


async def test_a_lost_lease_ends_the_waiter_that_held_it(
    world: World, hall: Channel, other: Channel, queue: FakeReceiver
) -> None:
    with anyio.fail_after(WAIT_S), pytest.raises(LeaseLost):
        async with supervisor(hall, "p1") as waiters, background_tasks() as tasks:
            tasks.start_soon(take_over, world, other)
            await waiters.hold("thread", queue)
    assert not queue.is_open
    assert await other.leases.is_held("thread")  # the loser did not give back what is another's


async def take_over(world: World, other: Channel) -> None:
    await until_asleep(other, RENEW_S, 60)
    world.dead.add("p1")
    await other.leases.take("thread", "p2", "")
    other.clock.advance(RENEW_S)


@pytest.mark.fault("F53")
async def test_a_newer_schema_ends_the_waiter_with_what_to_do(world: World, hall: Channel, queue: FakeReceiver) -> None:
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_asleep(hall, RENEW_S, 60)
        with closing(sqlite3.connect(world.path)) as newer:
            newer.execute("PRAGMA user_version=99")
        hall.clock.advance(RENEW_S)

        async def ended() -> bool:
            await hall.database.data_version()
            return not waiters.serves("thread")

        await until(ended)
        with pytest.raises(SchemaTooNew):
            await hall.send("ann", "worker")


async def test_an_address_of_another_is_served_until_there_is_nothing_to_do_and_then_given_back(
    hall: Channel, queue: FakeReceiver
) -> None:
    queue.finds = {1: Event.KEY_IN_ITEMS}
    await hall.send("ann", "worker")
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue, until_idle=True)
        await until_state(hall, 1, "accepted")
        hall.clock.advance(1)
        await until_state(hall, 1, "seen")

        async def ended() -> bool:
            hall.clock.advance(1)
            return not waiters.serves("thread") and not await hall.leases.is_held("thread")

        await until(ended)
        assert not queue.is_open


async def test_an_address_that_is_served_until_idle_is_served_for_good_once_that_is_asked(
    hall: Channel, queue: FakeReceiver
) -> None:
    """A server finds work of its own thread before its first tool call, and serves it as it would another's."""
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue, until_idle=True)
        assert not waiters.serves_for_good("thread")
        await until_asleep(hall, IDLE_S_OF_ANOTHERS)

        waiters.serve("thread", queue)
        hall.clock.advance(IDLE_S_OF_ANOTHERS)
        await until_step(queue, "open", times=2)

        assert waiters.serves_for_good("thread")


async def test_a_message_that_comes_while_a_waiter_ends_is_not_left_lying(
    world: World, hall: Channel, queue: FakeReceiver
) -> None:
    """The lease is being given back (the database is locked), and `serve` finds the address served still."""
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue, until_idle=True)
        await until_asleep(hall, RENEW_S, IDLE_S_OF_ANOTHERS)
        with closing(sqlite3.connect(world.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            hall.clock.advance(IDLE_S_OF_ANOTHERS)
            await until_step(queue, "close")
            await anyio.wait_all_tasks_blocked()
            assert waiters.serves("thread")
            other.execute(
                "INSERT INTO messages (room_id, sender_role_id, sender, text, created_at_ms) "
                "VALUES (1, 1, 'boss', 'hello', 0)"
            )
            other.execute("INSERT INTO deliveries (message_id, role_id, changed_at_ms) VALUES (1, 2, 0)")
            waiters.serve("thread", queue, until_idle=True)
            other.execute("COMMIT")
        await until_state(hall, 1, "accepted")


async def test_stopping_waits_for_what_is_being_written_and_gives_every_lease_back(
    hall: Channel, queue: FakeReceiver
) -> None:
    answer = anyio.Event()
    queue.will(hanging(answer))
    await hall.send("ann", "worker")
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_step(queue, "write 1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiters.stop, WAIT_S)
            await anyio.wait_all_tasks_blocked()
            answer.set()
        assert await hall.states() == {1: "accepted"}
        assert not await hall.leases.is_held("thread")

        waiters.serve("thread", queue)
        assert not waiters.serves("thread")
    assert list(bells_folder(hall.database.path).iterdir()) == []


async def test_with_nothing_to_serve_nothing_runs(hall: Channel) -> None:
    async with supervisor(hall, "p1"):
        await anyio.wait_all_tasks_blocked()
        assert hall.clock.asleep() == []
        assert not bells_folder(hall.database.path).exists()


async def test_an_idle_process_has_two_timers_the_renewal_and_the_slow_look(hall: Channel, queue: FakeReceiver) -> None:
    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_asleep(hall, 60)
        hall.clock.advance(60)
        await until_step(queue, "close")
        await until_asleep(hall, RENEW_S, POLL_S)
        assert hall.clock.asleep() == [RENEW_S, POLL_S]


async def test_the_bell_of_a_dead_process_is_removed_by_the_next(
    world: World, hall: Channel, queue: FakeReceiver
) -> None:
    left = bells_folder(hall.database.path) / "p0.1"
    left.parent.mkdir(mode=0o700)
    os.mkfifo(left)
    world.dead.add("p0")

    async with supervisor(hall, "p1") as waiters:
        waiters.serve("thread", queue)
        await until_served(hall)
        await until_asleep(hall, 60)
        assert not left.exists()
