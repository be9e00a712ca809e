"""What a person sees of rooms and says in them, through the real command line on a real file."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from channel.membership import Caller
from channel.wakeups import bells_folder, open_bell
from harness_adapters.composition import Channel, open_channel
from tests.integration.stuck_deliveries import COMMAND_LINE, TEXT, Stuck, stuck_deliveries
from tests.real.terminal import Terminal, terminal

SOON_S = 60
LINE_BYTES_MAX = 1_000_000


@pytest.fixture
async def stuck(tmp_path: Path) -> Stuck:
    return await stuck_deliveries(tmp_path)


@pytest.fixture
async def channel(stuck: Stuck) -> AsyncIterator[Channel]:
    """The same file, open in the test."""
    async with open_channel(stuck.database, durable=False, create=False) as channel:
        yield channel


def command(stuck: Stuck, *arguments: str) -> list[str]:
    return [*COMMAND_LINE, "--db", str(stuck.database), *arguments]


def environment(stuck: Stuck, **more: str) -> Mapping[str, str]:
    return {"HOME": str(stuck.database.parent.parent), "PATH": os.defpath, "TERM": "xterm", **more}


async def on_terminal(stuck: Stuck, *arguments: str, **more: str) -> tuple[int, str]:
    """The exit status of a command in a terminal, and what that showed, as it came."""
    with anyio.fail_after(SOON_S):
        async with terminal(
            command(stuck, *arguments), env=environment(stuck, **more), cwd=stuck.database.parent
        ) as run:
            status = await run.process.wait()
            await run.wait_until_read()
            return status, run.raw_output()


def state_to_person(stuck: Stuck) -> str:
    """Of message 6, which was sent to the person."""
    [delivery] = [each for each in stuck.json("deliveries")["deliveries"] if each["message_id"] == 6]
    return str(delivery["state"])


async def answer(channel: Channel, text: str = "Done.") -> None:
    """The planner writes to the person: message 6."""
    await channel.sending.send("session:planner", text, ["person"], None)


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


class TestWho:
    async def test_each_role_is_shown_with_its_harness_and_whether_messages_reach_it(self, stuck: Stuck) -> None:
        stuck.done("send", "hall", "builder", "hello")
        assert stuck.done("who", "hall") == (
            "ROOM  ROLE      HARNESS  STATE     SINCE    PENDING  DETAIL\n"
            "hall  planner   other    offline   15h ago  0\n"
            "hall  builder   codex    active    15h ago  1\n"
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


class TestSending:
    async def test_a_person_joins_with_the_first_message_and_is_told_how_it_stands(self, stuck: Stuck) -> None:
        sent = stuck.json("send", "hall", "builder", "reviewer", "  Stop\nafter the parser.  ")
        assert (sent["message_id"], sent["room"], sent["sender"]) == (5, "hall", "person")
        assert sent["to"]["builder"] == "active"
        assert sent["to"]["reviewer"].endswith(", 2 waiting")
        assert stuck.done("message", "5") == "  Stop\nafter the parser.  "

    async def test_the_waiter_of_a_recipient_is_woken(self, stuck: Stuck, channel: Channel) -> None:
        process = channel.process.to_text()
        async with open_bell(bells_folder(stuck.database), process, channel.ids) as bell:
            await channel.leases.take("session:planner", process, str(bell.path))
            assert stuck.done("send", "hall", "planner", "hello").endswith("planner  active\n")
            with anyio.fail_after(SOON_S):
                await bell.wait()

    async def test_a_name_once_given_is_kept_and_another_is_a_rename(self, stuck: Stuck) -> None:
        senders = [
            stuck.json("send", "hall", "builder", "text", *name)["sender"]
            for name in ([], ["--as", "kim"], [], ["--as", "lee"])
        ]
        assert senders == ["person", "kim", "kim", "lee"]
        assert [each["role"] for each in stuck.json("who")["roles"]] == ["planner", "builder", "reviewer", "lee"]

    async def test_to_all_leaves_out_nobody_but_the_sender(self, stuck: Stuck) -> None:
        assert set(stuck.json("send", "hall", "--all", "hello")["to"]) == {"planner", "builder", "reviewer"}

    async def test_the_text_may_come_in_through_a_pipe(self, stuck: Stuck) -> None:
        for given, stored in ((b"one\n\ttwo\n", "one\n\ttwo"), ("漢\n\n".encode(), "漢\n"), (b"x", "x")):
            run = await anyio.run_process(
                command(stuck, "send", "hall", "builder", "--json", "-"), env=environment(stuck), input=given
            )
            assert stuck.done("message", str(json.loads(run.stdout)["message_id"])) == stored

    async def test_what_looks_like_an_option_is_a_text_after_two_dashes(self, stuck: Stuck) -> None:
        stuck.done("send", "hall", "builder", "--json", "--", "--all of it")
        assert stuck.done("message", "5") == "--all of it"

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (["hal", "builder", "text"], "no room 'hal'"),
            (["hall", "nobody", "text"], "no role 'nobody'"),
            (["hall", "builder", ""], "it is empty"),
            (["hall", "builder", "--as", "planner", "text"], "a person does not take it over"),
            (["hall", "builder", "--as", "agent-channel", "text"], "the sender of the channel's own notices"),
            (["hall", "builder", "-"], "it is empty"),
        ],
    )
    async def test_what_is_refused_stores_nothing(self, stuck: Stuck, words: list[str], why: str) -> None:
        before = stored(stuck)
        assert why in stuck.refused("send", *words)
        assert stored(stuck) == before

    async def test_bytes_that_are_no_text_are_refused(self, stuck: Stuck) -> None:
        run = await anyio.run_process(
            command(stuck, "send", "hall", "builder", "-"), env=environment(stuck), input=b"ab\xff", check=False
        )
        assert (run.returncode, run.stdout) == (1, b"")
        assert b"it is no UTF-8 (byte 2). Convert it first. Nothing was sent." in run.stderr


def stored(stuck: Stuck) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(stuck.database)) as database:
        return [
            database.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("messages", "roles", "rooms")
        ]


class TestAnswersToAPerson:
    async def test_they_wait_until_a_terminal_has_shown_them(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        stuck.done("history", "hall")
        assert state_to_person(stuck) == "pending", "a program read it, and no person"

        await on_terminal(stuck, "history", "hall")
        assert state_to_person(stuck) == "accepted"
        assert stuck.json("deliveries")["deliveries"][0]["detail"] == "shown on a terminal"
        assert stuck.json("who")["roles"][3]["pending"] == 0

    async def test_agents_are_told_that_it_is_a_person_and_no_failure(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        sent = stuck.json("send", "hall", "planner", "And now?")
        assert sent["sender"] == "person"
        listed = stuck.done("deliveries", "--role", "person")
        assert "a person has not read it yet" in listed

    async def test_a_session_may_join_under_their_name_and_gets_what_waits(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        again = await channel.membership.join(caller_of(channel), "hall", "person", None)
        assert (again.pending, again.replaced.harness if again.replaced else None) == (1, "person")
        assert "is another session's" in stuck.refused("send", "hall", "planner", "Who are you?")


def caller_of(channel: Channel) -> Caller:
    """One more session."""
    process = channel.process.to_text()
    return Caller("session:new", "other", process, process)


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

    async def test_on_a_terminal_what_is_for_the_person_counts_as_shown(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        with anyio.fail_after(SOON_S):
            async with self.on_terminal(stuck) as run:
                await run.wait_for_output("Are you done?")
                await answer(channel, "Nearly.")
                await run.wait_for_output("Nearly.")
                while state_to_person(stuck) != "accepted":  # noqa: ASYNC110 - another process says so
                    await anyio.sleep(0.02)

    @staticmethod
    @asynccontextmanager
    async def on_terminal(stuck: Stuck) -> AsyncIterator[Terminal]:
        async with terminal(
            command(stuck, "tail", "hall"), env=environment(stuck), cwd=stuck.database.parent
        ) as running:
            yield running


class TestInviting:
    async def test_the_text_to_paste_says_what_the_instructions_teach_and_nothing_else(self, stuck: Stuck) -> None:
        assert stuck.done("invite", "hall", "tester", "--purpose", "Test the parser.", "--handoff", "planner") == (
            "Test the parser.\n"
            "First ask planner what to do.\n"
            'Call join("hall", "tester") of agent-channel.\n'
            "In Claude Code: then run the command that join returns in Monitor.\n"
        )
        assert stuck.json("invite", "hall", "tester")["handoff"] is None, "there are several"

    async def test_a_room_that_nobody_made_yet_may_be_named_also_without_any_channel(self, tmp_path: Path) -> None:
        nowhere = Stuck(tmp_path / "channel.db", None, "", tmp_path)  # type: ignore[arg-type]
        assert nowhere.done("invite", "hall", "planner").startswith("You are wanted in the room hall.\nCall join(")
        assert list(tmp_path.iterdir()) == []

    async def test_the_only_role_of_a_room_is_the_one_to_ask(self, stuck: Stuck, channel: Channel) -> None:
        await channel.membership.join(caller_of(channel), "cellar", "keeper", None)
        assert "First ask keeper what to do." in stuck.done("invite", "cellar", "guest")

    async def test_a_name_that_is_taken_and_a_role_to_ask_that_is_not_there_are_refused(self, stuck: Stuck) -> None:
        assert "The name 'builder' is taken" in stuck.refused("invite", "hall", "builder")
        assert "no role 'nobody'" in stuck.refused("invite", "hall", "tester", "--handoff", "nobody")
        assert "blank" in stuck.refused("invite", "hall", "a tester")


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


class TestCompletion:
    @staticmethod
    def completed(stuck: Stuck, *words: str) -> list[str]:
        script = (
            f'{stuck.done("completion", "bash")}\nCOMP_WORDS=(agent-channel "$@"); COMP_CWORD=$#\n'
            '_shtab_agent_channel\nprintf "%s\\n" "${COMPREPLY[@]}"'
        )
        run = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=SOON_S)
        return run.stdout.split()

    async def test_bash_completes_commands_their_options_and_their_choices(self, stuck: Stuck) -> None:
        assert self.completed(stuck, "hi") == ["history"]
        assert self.completed(stuck, "history", "hall", "--se") == ["--search"]
        assert self.completed(stuck, "deliveries", "res") == ["resend"]
        assert self.completed(stuck, "completion", "z") == ["zsh"]

    async def test_no_name_that_a_peer_chose_is_offered_for_bash_would_expand_it(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        await channel.membership.join(caller_of(channel), "$(touch${IFS}/tmp/x)", "guest", None)
        assert "touch" not in stuck.done("completion", "bash") + stuck.done("completion", "zsh")
        assert self.completed(stuck, "history", "$") == []

    async def test_zsh_gets_a_function_for_its_folder_of_completions(self, stuck: Stuck) -> None:
        assert stuck.done("completion", "zsh").startswith("#compdef agent-channel")
