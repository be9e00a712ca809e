"""The streamer as a process in a Monitor: nothing is lost, and nothing is shown as new twice, however it ends."""

import os
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path

import anyio
import pytest

from channel.wakeups import bells_folder, ring
from fakes.monitor_host import MonitorHost
from harness_adapters.callers import CLAUDE_CLIENT
from harness_adapters.claude.framing import decode
from tests.another_session import ROOM
from tests.integration.claude_stand_in import PEER, ClaudeStandIn, claude_stand_in
from tests.integration.harness_stand_in import RawClient, server_command

LIMIT_S = 40
"""Streamers start in 0.3 s each on a quiet machine; tests run side by side on a busy one."""

BOB = "bob"
TEXT = "first\n    indented <b>\n\nlast"


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[ClaudeStandIn]:
    async with claude_stand_in(tmp_path) as stand_in:
        await stand_in.join(BOB)
        yield stand_in


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end to write to of a pipe that takes not one byte more."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    yield write_end
    os.close(read_end)
    os.close(write_end)


async def the_next_streamer_shows(claude: ClaudeStandIn, *, repeated: bool) -> None:
    """TEXT again and marked as a repeat, or not again; a later message follows it either way."""
    async with claude.monitor():
        await claude.peer.send("later", BOB)
        await claude.channel.until_states(["seen", "seen"], to=BOB)
    expected = [(TEXT, True), ("later", False)] if repeated else [("later", False)]
    assert [(text, header.repeat) for header, text in claude.shown] == expected


@pytest.mark.fault("F1")
async def test_a_streamer_killed_between_the_hand_over_and_the_print_leaves_a_message_that_is_repeated(
    claude: ClaudeStandIn,
) -> None:
    with anyio.fail_after(LIMIT_S), full_pipe() as stdout:
        async with await claude.start(stdout) as streamer:
            await claude.peer.send(TEXT, BOB)
            await claude.channel.until_states(["handed_over"], to=BOB)
            streamer.kill()
        await the_next_streamer_shows(claude, repeated=True)


@pytest.mark.fault("F1")
@pytest.mark.parametrize("was_shown", [True, False])
async def test_a_streamer_killed_between_the_print_and_the_acknowledgement_leaves_it_to_the_transcript(
    claude: ClaudeStandIn, was_shown: bool
) -> None:
    ours, its = socket.socketpair()
    with anyio.fail_after(LIMIT_S), ours, its:
        async with await claude.start(its.fileno()) as streamer:
            await claude.peer.send(TEXT, BOB)
            await anyio.wait_readable(ours)
            assert await claude.channel.states(to=BOB) == ["handed_over"]
            streamer.kill()
        printed = ours.recv(65_536).decode().removesuffix("\n")
        assert decode(printed.split("\n"))[1] == TEXT
        if was_shown:
            claude.record(printed)
        await the_next_streamer_shows(claude, repeated=not was_shown)


@pytest.mark.fault("F1")
@pytest.mark.parametrize("was_shown", [True, False])
async def test_a_streamer_killed_after_the_acknowledgement_leaves_it_to_the_transcript(
    claude: ClaudeStandIn, was_shown: bool
) -> None:
    ours, its = socket.socketpair()
    with anyio.fail_after(LIMIT_S), ours, its:
        async with await claude.start(its.fileno()) as streamer:
            await claude.peer.send(TEXT, BOB)
            await anyio.wait_readable(ours)
            printed = ours.recv(65_536).decode().removesuffix("\n")
            await claude.channel.until_states(["accepted"], to=BOB)
            streamer.kill()
        if was_shown:
            claude.record(printed)
        await the_next_streamer_shows(claude, repeated=not was_shown)


@pytest.mark.fault("F2")
async def test_messages_to_a_session_whose_monitor_was_never_started_wait_and_arrive_in_order(
    claude: ClaudeStandIn,
) -> None:
    with anyio.fail_after(LIMIT_S):
        answers = [await claude.peer.send(text, BOB) for text in ("one", "two", "three")]
        assert await claude.channel.states(to=BOB) == ["pending"] * 3
        async with claude.monitor():
            shown = await claude.until_shown(3)
    assert all(answer["to"][BOB]["state"] == "pending" for answer in answers)
    assert all(answer["to"][BOB]["waiter"].startswith("offline since ") for answer in answers)
    assert [text for _, text in shown] == ["one", "two", "three"]


@pytest.mark.fault("F7")
async def test_what_waited_is_pushed_without_new_traffic_once_a_slow_client_has_finished_its_handshake(
    claude: ClaudeStandIn,
) -> None:
    """The streamer is armed long before its session joins, as a plugin's monitor is."""
    alice = "alice"
    with anyio.fail_after(LIMIT_S):
        await claude.channel.session("gone").join(alice)
        for text in ("one", "two", "three"):
            await claude.peer.send(text, alice)
        command = server_command(claude.database)
        async with claude.monitor(), await anyio.open_process(command, env=claude.environment) as server:
            await claude.until_active()
            client = RawClient(server, CLAUDE_CLIENT)
            await client.begin_handshake()
            assert claude.shown == []
            await client.finish_handshake()
            await claude.leave()
            answer = await client.call("join", room=ROOM, name=alice)
            shown = await claude.until_shown(3)
    assert answer["waiter"] == "active"
    assert [text for _, text in shown] == ["one", "two", "three"]


@pytest.mark.fault("F10")
async def test_of_two_streamers_started_at_once_one_prints_and_the_other_says_so(claude: ClaudeStandIn) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor(), claude.monitor():
            await claude.notifications.wait_for(lambda each: each.kind == "completed")
            await claude.peer.send(TEXT, BOB)
            await claude.channel.until_states(["seen"], to=BOB)
    assert [text for _, text in claude.shown] == [TEXT]
    assert len(claude.said) == 1


@pytest.mark.fault("F10")
async def test_a_streamer_of_a_former_term_prints_nothing_more_but_that_it_ends(claude: ClaudeStandIn) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor() as old:
            old_pid = await claude.until_active()
            os.kill(old_pid, signal.SIGSTOP)
            former = await claude.channel.waiter(claude.address)
            assert former is not None
            await run_sql(claude, "UPDATE waiters SET lease_until_ms = 0")  # it was stopped for over a minute
            async with claude.monitor():
                new_pid = await claude.until_active()
                os.kill(new_pid, signal.SIGSTOP)  # so that only the old one can try
                await claude.peer.send(TEXT, BOB)
                os.kill(old_pid, signal.SIGCONT)
                ring([former["bell"]])
                assert await old.wait_ended() == 0
                assert claude.shown == []
                os.kill(new_pid, signal.SIGCONT)
                shown = await claude.until_shown(1)
                await claude.channel.until_states(["seen"], to=BOB)
    assert [(text, header.repeat) for header, text in shown] == [(TEXT, False)]
    assert claude.said == [
        "agent-channel: another streamer serves this session now, so this one ends. Nothing is lost."
    ]


@pytest.mark.fault("F33")
async def test_of_twenty_streamers_at_once_one_wins_and_each_other_says_so_in_one_line(claude: ClaudeStandIn) -> None:
    with anyio.fail_after(LIMIT_S):
        async with AsyncExitStack() as stack:
            hosts = [await stack.enter_async_context(claude.monitor()) for _ in range(20)]
            await claude.notifications.wait_for(lambda _: len(claude.said) == 19)
            await claude.peer.send(TEXT, BOB)
            await claude.channel.until_states(["seen"], to=BOB)
            stderr = b"".join(host.stderr for host in hosts)
    assert [text for _, text in claude.shown] == [TEXT]
    assert len(claude.said) == 19
    assert len(set(claude.said)) == 1
    assert stderr == b""


def expire(host: MonitorHost) -> None:
    host.stop()


def kill(host: MonitorHost) -> None:
    host.signal_group(signal.SIGKILL)


def close_stdout(host: MonitorHost) -> None:
    host.vanish()


@pytest.mark.fault("F15")
@pytest.mark.parametrize("end", [expire, kill, close_stdout])
async def test_messages_in_the_gap_between_two_monitors_arrive_and_none_is_shown_as_new_twice(
    claude: ClaudeStandIn, end: Callable[[MonitorHost], None]
) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor() as host:
            await claude.peer.send("before", BOB)
            await claude.until_shown(1)
            end(host)
            await claude.channel.until_offline(claude.address)
        await claude.peer.send("in the gap", BOB)
        await claude.peer.send(TEXT, BOB)
        async with claude.monitor():
            await claude.until_shown(3)
            await claude.channel.until_states(["seen"] * 3, to=BOB)
    assert [(text, header.repeat) for header, text in claude.shown] == [
        ("before", False),
        ("in the gap", False),
        (TEXT, False),
    ]


@pytest.mark.fault("F15")
async def test_a_long_message_that_the_expiry_cut_off_is_shown_again_whole_and_marked(claude: ClaudeStandIn) -> None:
    text = "\n".join(f"line {number} " + "x" * 100 for number in range(120))
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor() as host:
            await claude.peer.send(text, BOB)
            await claude.notifications.wait_for(lambda each: "part=1/" in each.text)
            host.stop()
            await claude.channel.until_offline(claude.address)
            assert await claude.channel.states(to=BOB) == ["handed_over"]
        async with claude.monitor():
            await claude.channel.until_states(["seen"], to=BOB)
    ((header, shown),) = claude.shown
    assert (shown, header.repeat) == (text, True)


@pytest.mark.fault("F16")
async def test_a_reader_that_stops_reading_is_reported_and_nothing_is_acknowledged_until_it_dies(
    claude: ClaudeStandIn,
) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor() as host:
            await claude.until_active()
            host.pause_reading()
            for number in range(100):
                await claude.peer.send(f"{number} " + "x" * 2_000, BOB)
            waiter = await claude.channel.until_waiter(claude.address, lambda row: row["detail"] != "")
            answer = await claude.peer.send("last", BOB)
            blocked = await claude.channel.states(to=BOB)
            host.vanish()
            await host.wait_ended()
            after = await claude.channel.states(to=BOB)
    assert waiter["detail"].startswith("reader blocked: the harness has read nothing since ")
    assert "reader blocked" in answer["to"][BOB]["waiter"]
    assert blocked[0] == "handed_over"
    assert set(blocked[1:]) == {"pending"}
    assert after == blocked
    assert not await claude.channel.channel.leases.is_held(claude.address)


@pytest.mark.fault("F17")
async def test_a_file_that_is_no_database_is_said_in_one_line(claude: ClaudeStandIn, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "channel.db"
    broken.parent.mkdir(mode=0o700)
    broken.write_text("this is a shopping list, and no database at all" * 100)
    before = broken.read_bytes()
    with anyio.fail_after(LIMIT_S):
        said = await said_at_its_end(claude, database=broken)
    assert str(broken) in said
    assert "run the same command again" in said
    assert broken.read_bytes() == before


@pytest.mark.fault("F17")
async def test_bells_that_can_t_be_hung_are_said_in_one_line(claude: ClaudeStandIn) -> None:
    bells = bells_folder(claude.database)
    bells.write_text("in the way")
    with anyio.fail_after(LIMIT_S):
        said = await said_at_its_end(claude)
    assert f"{bells} can't be used" in said
    assert "run the same command again" in said


@pytest.mark.fault("F17")
async def test_a_fault_of_ours_is_said_in_one_line_and_its_traceback_goes_to_standard_error(
    claude: ClaudeStandIn,
) -> None:
    await claude.peer.send(TEXT, BOB)
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor():
            await claude.channel.until_states(["seen"], to=BOB)
        await run_sql(claude, "UPDATE deliveries SET state = 'accepted', place = 'no place that we wrote'")
        async with claude.monitor() as host:
            assert await host.wait_ended() == 1
            await claude.notifications.wait_for(lambda each: each.kind == "failed")
    (said,) = claude.said
    assert said.startswith("agent-channel: it failed (JSONDecodeError(")
    assert said.endswith("The messages wait; run the same command again.")
    assert b"Traceback" in host.stderr


@pytest.mark.fault("F17")
async def test_a_newer_schema_at_the_start_is_said_in_one_line(claude: ClaudeStandIn) -> None:
    use_newer_schema(claude)
    with anyio.fail_after(LIMIT_S):
        said = await said_at_its_end(claude)
    assert "Restart this session" in said


@pytest.mark.fault("F17")
async def test_a_newer_schema_under_a_running_streamer_is_said_in_one_line_and_the_message_waits(
    claude: ClaudeStandIn,
) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor() as host:
            pid = await claude.until_active()
            os.kill(pid, signal.SIGSTOP)
            await claude.peer.send(TEXT, BOB)
            use_newer_schema(claude)
            os.kill(pid, signal.SIGCONT)
            assert await host.wait_ended() == 1
            await claude.notifications.wait_for(lambda each: each.kind == "failed")
            states = await claude.channel.states(to=BOB)
    assert len(claude.said) == 1
    assert "Restart this session" in claude.said[0]
    assert claude.shown == []
    assert states == ["pending"]


@pytest.mark.fault("F17")
async def test_a_role_taken_by_another_session_is_said_once_and_the_other_roles_go_on(claude: ClaudeStandIn) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude.monitor():
            await claude.until_active()
            await claude.channel.session("thief").join(BOB)
            await claude.until_shown(1)
            await claude.join("bob2")
            await claude.peer.send("still here", "bob2")
            shown = await claude.until_shown(2)
    (notice, _), (header, text) = shown
    assert "unless your user asks" in shown[0][1]
    assert (notice.room, header.room) == (ROOM, ROOM)
    assert (header.sender, text) == (PEER, "still here")


async def said_at_its_end(claude: ClaudeStandIn, database: Path | None = None) -> str:
    """The only line of a streamer that ends by itself, as a failure."""
    if database is not None:
        claude.database = database
    async with claude.monitor() as host:
        assert await host.wait_ended() == 1
        await claude.notifications.wait_for(lambda each: each.kind == "failed")
    (said,) = claude.said
    return said


def use_newer_schema(claude: ClaudeStandIn) -> None:
    """What a later version of agent-channel does to the file."""
    with closing(sqlite3.connect(claude.channel.channel.database.path)) as connection:
        connection.execute("PRAGMA user_version = 99")


async def run_sql(claude: ClaudeStandIn, sql: str) -> None:
    async with claude.channel.channel.database.transaction() as transaction:
        await transaction.run(sql)
