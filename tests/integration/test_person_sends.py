"""A person says something in a room, is answered, and invites, through the real command line on a real file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from channel.database import BUSY_TIMEOUT_MS
from channel.inspection import Inspection
from channel.wakeups import bells_folder, open_bell
from harness_adapters.composition import Channel
from harness_adapters.doctor.deliveries import deliveries
from harness_adapters.doctor.finding import Level
from tests.integration.person_terminal import SOON_S, command, environment, on_terminal
from tests.integration.stuck_deliveries import Stuck, one_more_session
from tests.real.terminal import terminal


def state_to_person(stuck: Stuck) -> str:
    """Of message 6, which was sent to the person."""
    [delivery] = [each for each in stuck.json("deliveries")["deliveries"] if each["message_id"] == 6]
    return str(delivery["state"])


async def answer(channel: Channel, text: str = "Done.") -> None:
    """The planner writes to the person: message 6."""
    await channel.sending.send("session:planner", text, ["person"], None)


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

    async def test_tail_on_a_terminal_shows_them_as_they_come(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        tail = terminal(command(stuck, "tail", "hall"), env=environment(stuck), cwd=stuck.database.parent)
        with anyio.fail_after(SOON_S):
            async with tail as run:
                await run.wait_for_output("Are you done?")
                await answer(channel, "Nearly.")
                await run.wait_for_output("Nearly.")
                while state_to_person(stuck) != "accepted":  # noqa: ASYNC110 - another process says so
                    await anyio.sleep(0.02)

    @pytest.mark.fault("F39")
    async def test_tail_goes_on_while_the_file_is_locked_and_says_what_was_shown_after_it(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        tail = terminal(command(stuck, "tail", "hall"), env=environment(stuck), cwd=stuck.database.parent)
        with anyio.fail_after(SOON_S), closing(sqlite3.connect(stuck.database, isolation_level=None)) as other:
            async with tail as run:
                await run.wait_for_output("Are you done?")
                await answer(channel, "Nearly.")
                other.execute("BEGIN IMMEDIATE")  # between the message and the note that it was shown
                await run.wait_for_output("Nearly.")
                await anyio.sleep(BUSY_TIMEOUT_MS / 1_000 + 1)  # SQLite itself waits so long
                assert run.process.returncode is None
                other.execute("ROLLBACK")
                await answer(channel, "Now.")
                await run.wait_for_output("Now.")
                while state_to_person(stuck) != "accepted":  # noqa: ASYNC110 - another process says so
                    await anyio.sleep(0.02)

    async def test_agents_are_told_that_it_is_a_person_and_no_failure(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        sent = stuck.json("send", "hall", "planner", "And now?")
        assert sent["sender"] == "person"
        listed = stuck.done("deliveries", "--role", "person")
        assert "a person has not read it yet" in listed

    async def test_the_doctor_finds_nothing_wrong_with_them(self, stuck: Stuck, channel: Channel) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        inspection = Inspection(channel.database, channel.clock)
        findings = [each async for each in deliveries(inspection, channel.clock.now_ms())]
        [found] = [each for each in findings if "person" in each.proved]
        assert (found.level, found.to_do) == (Level.PASS, "")
        assert found.proved.startswith("not read yet: 1 message to person in hall, a person")

    async def test_a_session_may_join_under_their_name_and_gets_what_waits(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        stuck.done("send", "hall", "planner", "Are you done?")
        await answer(channel)
        again = await channel.membership.join(one_more_session(channel), "hall", "person", None)
        assert (again.pending, again.replaced.harness if again.replaced else None) == (1, "person")
        assert "is another session's" in stuck.refused("send", "hall", "planner", "Who are you?")


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
        await channel.membership.join(one_more_session(channel), "cellar", "keeper", None)
        assert "First ask keeper what to do." in stuck.done("invite", "cellar", "guest")

    async def test_a_name_that_is_taken_and_a_role_to_ask_that_is_not_there_are_refused(self, stuck: Stuck) -> None:
        assert "The name 'builder' is taken" in stuck.refused("invite", "hall", "builder")
        assert "no role 'nobody'" in stuck.refused("invite", "hall", "tester", "--handoff", "nobody")
        assert "blank" in stuck.refused("invite", "hall", "a tester")
