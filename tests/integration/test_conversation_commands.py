"""What a person sees of rooms and says in them, through the real command line on a real file."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from harness_adapters.composition import Channel, open_channel
from tests.integration.person_terminal import SOON_S, command, environment, on_terminal
from tests.integration.stuck_deliveries import TEXT, Stuck

LINE_BYTES_MAX = 1_000_000


class TestRooms:
    async def test_they_are_listed_with_their_roles_and_the_newest_message(self, stuck: Stuck) -> None:
        assert stuck.done("rooms") == (
            "ROOM  ROLES  ACTIVE  PENDING  LAST MESSAGE\nhall  3      1       1        15h ago\n"
        )
        [room] = stuck.json("rooms")["rooms"]
        assert (room["name"], room["roles"], room["pending"], room["newest_message_id"]) == ("hall", 3, 1, 4)

    async def test_there_may_be_none(self, tmp_path: Path) -> None:
        async with open_channel(tmp_path / "channel.db", durable=False):
            pass
        empty = Stuck(tmp_path / "channel.db", None, "", tmp_path)  # type: ignore[arg-type]
        assert empty.done("rooms") == "There is no room yet: a session makes one when it joins it.\n"
        assert empty.done("who") == "Nobody holds a role.\n"


async def test_a_message_steers_no_terminal_and_comes_through_a_pipe_as_it_was_sent(
    stuck: Stuck, channel: Channel
) -> None:
    steering = "one\x1b[2J\n\ttwo\x07"
    await channel.sending.send("session:planner", steering, ["builder"], None)

    assert stuck.done("message", "5") == steering
    assert await on_terminal(stuck, "message", "5") == (0, "one\\x1b[2J\r\n\ttwo\\x07\r\n")


class TestWho:
    async def test_each_role_is_shown_with_its_harness_and_whether_messages_reach_it(self, stuck: Stuck) -> None:
        stuck.done("send", "hall", "builder", "hello")
        assert stuck.done("who", "hall") == (
            "ROOM  ROLE      HARNESS  STATE     SINCE    PENDING  DETAIL\n"
            "hall  planner   other    offline   15h ago  0\n"
            "hall  builder   codex    active             1\n"
            "hall  reviewer  other    offline   15h ago  1\n"
            "hall  person    person   a person  <1m ago  0\n"
        )

    async def test_a_waiter_that_serves_a_role_is_seen_with_what_it_says(self, stuck: Stuck, channel: Channel) -> None:
        lease = await channel.leases.take("session:planner", channel.process.to_text(), "")
        await channel.leases.set_detail(lease, "reader blocked: \x1b[2J")

        planner = stuck.json("who")["roles"][0]
        assert (planner["state"], planner["waiter_active"], planner["offline_since_ms"]) == ("active", True, None)
        assert r"active            0        reader blocked: \x1b[2J" in stuck.done("who")

    async def test_a_room_that_is_not_there_is_told_with_those_that_are(self, stuck: Stuck) -> None:
        for name in ("who", "history", "tail"):
            assert "no room 'hal' in this channel. The rooms there are: hall." in stuck.refused(name, "hal")


class TestHistory:
    async def test_what_was_said_is_printed_with_what_has_not_arrived(self, stuck: Stuck) -> None:
        heads = [line for line in stuck.done("history", "hall").splitlines() if line[:1].isdigit()]
        assert [head.split("  ")[:2] for head in heads] == [
            ["1", "planner -> builder"],
            ["2", "planner -> builder (uncertain)"],
            ["3", "planner -> reviewer (pending)"],
            ["4", "builder -> planner"],
        ]
        assert "\n    Split parse() in two:\n    \tone reads, one checks.\n" in stuck.done("history", "hall")

    @pytest.mark.parametrize(
        ("narrowed", "ids", "are_more"),
        [
            ([], [1, 2, 3, 4], False),
            (["--limit", "2"], [3, 4], True),
            (["--since", "1"], [2, 3, 4], False),
            (["--since", "1", "--limit", "2"], [2, 3], True),
            (["--since", "1h"], [], False),
            (["--since", "16h"], [1, 2, 3, 4], False),
            (["--search", "PARSER the"], [1], False),
            (["--search", "e", "--limit", "1"], [4], True),
            (["--search", "e", "--limit", "1", "--since", "0"], [1], True),
        ],
    )
    async def test_it_is_narrowed_down(self, stuck: Stuck, narrowed: list[str], ids: list[int], are_more: bool) -> None:
        found = stuck.json("history", "hall", *narrowed)
        assert ([each["message_id"] for each in found["messages"]], found["are_more"]) == (ids, are_more)

    async def test_a_program_gets_texts_whole_and_a_person_their_beginning(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        long = "a long line\n" * 1_000
        await channel.sending.send("session:planner", long, ["builder"], None)

        assert stuck.json("history", "hall", "--since", "4")["messages"][0]["text"] == long
        assert "… 12,000 characters; all of it: agent-channel message 5" in stuck.done("history", "hall")
        assert len(stuck.done("history", "hall", "--search", "long")) < len(long) / 2
        assert stuck.done("history", "hall", "--since", "4", "--whole").count("    a long line\n") == 1_000

    async def test_nothing_but_the_history_is_printed_into_a_pipe(self, stuck: Stuck) -> None:
        assert stuck.done("history", "hall", "--search", "nowhere") == ""
        assert "earlier" not in stuck.done("history", "hall", "--limit", "1")

    async def test_on_a_terminal_heads_are_bold_and_it_is_said_if_there_are_more(self, stuck: Stuck) -> None:
        status, shown = await on_terminal(stuck, "history", "hall", "--limit", "1")
        assert status == 0
        assert shown.startswith("\x1b[1m4  builder -> planner")
        assert "There are earlier ones: see --limit and --since." in shown

    @pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    async def test_no_colour_is_used_where_none_is_wanted(self, stuck: Stuck, wish: dict[str, str]) -> None:
        _, shown = await on_terminal(stuck, "history", "hall", **wish)
        assert "4  builder -> planner" in shown
        assert "\x1b" not in shown


class TestTail:
    @staticmethod
    @asynccontextmanager
    async def followed(stuck: Stuck, *arguments: str) -> AsyncIterator[tuple[Process, BufferedByteReceiveStream]]:
        with anyio.fail_after(SOON_S):
            async with await anyio.open_process(
                command(stuck, "tail", "hall", *arguments), env=environment(stuck), stdin=subprocess.DEVNULL
            ) as process:
                assert process.stdout is not None
                try:
                    yield process, BufferedByteReceiveStream(process.stdout)
                finally:
                    if process.returncode is None:
                        process.kill()

    async def test_a_program_gets_each_message_as_a_line_as_it_comes(self, stuck: Stuck, channel: Channel) -> None:
        async with self.followed(stuck, "--json", "--limit", "2") as (_, output):
            for expected in (3, 4):
                assert json.loads(await output.receive_until(b"\n", LINE_BYTES_MAX))["message_id"] == expected
            for text in (TEXT, "漢\x1b"):
                await channel.sending.send("session:planner", text, ["builder"], None)
                line = json.loads(await output.receive_until(b"\n", LINE_BYTES_MAX))
                assert (line["text"], line["to"][0]["state"]) == (text, "pending")

    async def test_a_room_without_messages_is_followed_too(self, stuck: Stuck, channel: Channel) -> None:
        with closing(sqlite3.connect(stuck.database)) as database:
            database.executescript("DELETE FROM delivery_events; DELETE FROM deliveries; DELETE FROM messages;")
        async with self.followed(stuck, "--json") as (_, output):
            await channel.sending.send("session:planner", "first", ["builder"], None)
            assert json.loads(await output.receive_until(b"\n", LINE_BYTES_MAX))["text"] == "first"

    async def test_it_ends_with_its_reader_though_nothing_comes(self, stuck: Stuck) -> None:
        read, write = os.pipe()
        with anyio.fail_after(SOON_S):
            async with await anyio.open_process(
                command(stuck, "tail", "hall"), env=environment(stuck), stdin=subprocess.DEVNULL, stdout=write
            ) as process:
                os.close(write)
                await anyio.wait_readable(read)
                os.close(read)
                assert await process.wait() == -signal.SIGPIPE
                assert process.stderr is not None
                with pytest.raises(anyio.EndOfStream):
                    await process.stderr.receive()


@pytest.mark.parametrize(
    "wrong",
    [
        ["rooms", "hall"],
        ["history"],
        ["history", "hall", "--since", "long"],
        ["history", "hall", "--limit", "0"],
        ["tail"],
        ["send", "hall", "text"],
        ["send", "hall", "--all", "builder", "text"],
        ["invite", "hall", "tester", "--purpose", "two\nlines"],
        ["completion", "fish"],
    ],
)
async def test_a_wrong_call_is_answered_with_the_usage(stuck: Stuck, wrong: list[str]) -> None:
    run = stuck.run(*wrong)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"usage: agent-channel {wrong[0]}" in run.stderr


@pytest.mark.parametrize("name", ["rooms", "who", "history", "tail", "send", "invite", "completion"])
async def test_help_says_what_it_is_for(stuck: Stuck, name: str) -> None:
    assert f"usage: agent-channel {name}" in stuck.done(name, "--help")


async def test_the_exit_statuses_are_in_the_help(stuck: Stuck) -> None:
    assert "130 stopped by Ctrl-C" in stuck.done("--help")
