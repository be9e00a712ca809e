"""What a person does about deliveries, through the real command line on a real file."""

import json
import re
import signal
import sqlite3
from contextlib import closing

import anyio
import pytest

from harness_adapters.codex.envelope import ORIGIN
from tests.bench.growth import fill
from tests.integration.stuck_deliveries import COMMAND_LINE, TEXT, Stuck

pytestmark = pytest.mark.timeout(120)

MANY = 20_000
SOON_S = 60


def stored(database: sqlite3.Connection) -> int:
    """How many messages there are."""
    return int(database.execute("SELECT count(*) FROM messages").fetchone()[0])


async def test_a_list_holds_all_of_each_line_for_programs_and_says_if_there_are_more(stuck: Stuck) -> None:
    whole = stuck.json("deliveries")
    assert [(each["delivery_id"], each["state"]) for each in whole["deliveries"]] == [
        (4, "accepted"),
        (3, "pending"),
        (2, "uncertain"),
        (1, "seen"),
    ]
    assert whole["are_more"] is False
    assert whole["deliveries"][2]["detail"] == "the app-server ended unasked"

    cut = stuck.json("deliveries", "list", "--limit", "1")
    assert [each["message_id"] for each in cut["deliveries"]] == [4]
    assert cut["are_more"] is True
    assert "There are more" in stuck.done("deliveries", "--limit", "1")


async def test_a_state_that_is_none_is_refused_with_those_that_there_are(stuck: Stuck) -> None:
    done = stuck.run("deliveries", "--state", "lost")
    assert done.returncode == 2
    assert "'lost' (choose from " in done.stderr
    assert "uncertain" in done.stderr


@pytest.mark.parametrize(
    ("narrowed", "ids"),
    [
        (["--state", "seen", "--state", "pending"], [3, 1]),
        (["--role", "builder"], [2, 1]),
        (["--room", "cellar"], []),
        (["--older-than", "14h"], [4, 3, 2, 1]),
        (["--older-than", "1d"], []),
    ],
)
async def test_a_list_is_narrowed_down(stuck: Stuck, narrowed: list[str], ids: list[int]) -> None:
    found = stuck.json("deliveries", *narrowed)["deliveries"]
    assert [each["delivery_id"] for each in found] == ids
    if not ids:
        assert stuck.done("deliveries", *narrowed) == "No delivery is like that.\n"


async def test_a_delivery_is_shown_for_programs_with_all_its_events(stuck: Stuck) -> None:
    shown = stuck.json("deliveries", "show", "2@builder")

    assert (shown["delivery_id"], shown["policy"], shown["text_begins"]) == (2, "queue", TEXT)
    assert [(each["event"], each["to_state"]) for each in shown["events"]] == [
        ("sent", "pending"),
        ("hand_over_recorded", "handed_over"),
        ("answer_lost", "uncertain"),
    ]


async def test_what_others_wrote_can_not_steer_the_terminal(stuck: Stuck) -> None:
    with closing(sqlite3.connect(stuck.database)) as database:
        database.execute("UPDATE messages SET text = ? WHERE message_id = 2", ("a\x1b[2Jb\u202ec\r\n\x07",))
        database.execute("UPDATE deliveries SET detail = ? WHERE delivery_id = 2", ("\x1b]0;title\x07",))
        database.commit()

    shown = stuck.done("deliveries", "show", "2") + stuck.done("deliveries")

    assert r"a\x1b[2Jb\u202ec\r\n\x07" in shown
    assert not {each for each in shown if not each.isprintable()} - {"\n"}


class TestLooking:
    async def test_a_message_that_ran_meanwhile_is_seen(self, stuck: Stuck) -> None:
        key = stuck.json("deliveries", "show", "2")["key"]
        stuck.show_in_thread(key, f"2 hall planner\n{ORIGIN}\n{TEXT}")

        look = stuck.json("deliveries", "look", "2")

        assert (look["before"], look["state"]) == ("uncertain", "seen")
        assert "among the items" in look["found"]
        assert look["looked_at"][2] == "its user messages: 2"
        assert stuck.state(2) == "seen"

    async def test_another_text_under_the_key_is_a_conflict(self, stuck: Stuck) -> None:
        key = stuck.json("deliveries", "show", "2")["key"]
        stuck.show_in_thread(key, "something else")

        assert stuck.json("deliveries", "look", "2")["state"] == "conflict"

    async def test_a_codex_that_is_gone_is_named_and_nothing_is_recorded(self, stuck: Stuck) -> None:
        (stuck.database.parent.parent / "codex").unlink()

        assert "Delivery 2 can't be looked for: child: " in stuck.refused("deliveries", "look", "2")
        assert stuck.state(2) == "uncertain"

    async def test_a_message_that_stands_whole_in_a_transcript_is_seen(self, stuck: Stuck) -> None:
        looked = stuck.json("deliveries", "look", "4")
        assert (looked["state"], looked["is_conclusive"]) == ("accepted", False)

        content = (
            "<task-notification>\n<task-id>b1</task-id>\n<event>4 hall builder\n|Done.</event>\n</task-notification>"
        )
        record = {"type": "user", "message": {"role": "user", "content": content}}
        stuck.transcript.write_text(json.dumps(record) + "\n")

        looked = stuck.json("deliveries", "look", "4")
        assert (looked["state"], looked["found"]) == ("seen", "it stands there whole")

    async def test_what_is_not_in_the_transcript_is_not_printed_again_for_a_look(self, stuck: Stuck) -> None:
        assert "delivery 4 of message 4 to planner is still accepted" in stuck.done("deliveries", "look", "4")
        stuck.transcript.unlink()
        assert "there is no such file to read" in stuck.done("deliveries", "look", "4")
        assert stuck.state(4) == "accepted"

    async def test_what_was_handed_to_nobody_is_nowhere(self, stuck: Stuck) -> None:
        assert "handed over to nobody yet" in stuck.refused("deliveries", "look", "3")


class TestSendingAgain:
    async def test_it_is_looked_for_first_and_what_turns_up_is_not_sent_again(self, stuck: Stuck) -> None:
        key = stuck.json("deliveries", "show", "2")["key"]
        stuck.show_in_thread(key, f"2 hall planner\n{ORIGIN}\n{TEXT}")

        assert "Delivery 2 is seen and was not sent again" in stuck.refused("deliveries", "resend", "2")
        assert len(stuck.json("deliveries")["deliveries"]) == 4

    async def test_one_that_can_not_be_looked_for_is_sent_again_only_by_force(self, stuck: Stuck) -> None:
        (stuck.database.parent.parent / "codex").unlink()
        refused = stuck.refused("deliveries", "resend", "2")
        assert "can't be looked for" in refused
        assert "With --force it is sent all the same" in refused

        again = stuck.json("deliveries", "resend", "2", "--force")["sent_again"]
        assert (again["message_id"], again["recipient"]) == (5, "builder")
        assert stuck.state(2) == "withdrawn"
        assert stuck.json("deliveries", "show", str(again["delivery_id"]))["text_begins"] == TEXT

    async def test_one_whose_thread_is_archived_is_not_known_to_be_absent(self, stuck: Stuck) -> None:
        stuck.home.set_archived(stuck.thread, True)

        assert "can't be looked for" in stuck.refused("deliveries", "resend", "2")

    async def test_one_that_waits_is_delivered_anyway(self, stuck: Stuck) -> None:
        assert "it waits, and is delivered" in stuck.refused("deliveries", "resend", "3")


async def test_what_is_decided_is_for_programs_too_and_decided_once(stuck: Stuck) -> None:
    assert stuck.json("deliveries", "drop", "3") == {"delivery_id": 3, "before": "pending", "state": "withdrawn"}
    assert "Delivery 3 is withdrawn (dropped by a person)" in stuck.refused("deliveries", "drop", "3")
    assert "can't be taken back" in stuck.refused("deliveries", "drop", "4")


class TestTrimming:
    async def test_only_what_is_old_enough_is_counted_and_removed(self, stuck: Stuck) -> None:
        none = {"removed": 0, "kept": 0, "dry_run": True}
        assert none.items() <= stuck.json("trim", "--older-than", "2d", "--dry-run").items()
        counted = stuck.json("trim", "--older-than", "14h", "--dry-run")
        assert (counted["removed"], counted["kept"]) == (1, 2)  # seen; uncertain, pending; the newest is not counted
        assert len(stuck.json("deliveries")["deliveries"]) == 4

    async def test_it_stops_between_two_steps_when_it_is_told_to(self, stuck: Stuck) -> None:
        fill(stuck.database, MANY)
        command = [*COMMAND_LINE, "--db", str(stuck.database), "trim", "--older-than", "1d"]
        with closing(sqlite3.connect(stuck.database)) as database, anyio.fail_after(SOON_S):
            async with await anyio.open_process(command, env={"HOME": str(stuck.database.parent.parent)}) as process:
                assert process.stderr is not None
                while stored(database) == MANY + 4:  # noqa: ASYNC110 - another process removes them
                    await anyio.sleep(0.01)
                process.send_signal(signal.SIGINT)
                said = (await process.stderr.receive()).decode()
                assert await process.wait() == 130
            assert re.match(r"agent-channel: stopped: [0-9,]+ messages removed, and nothing is left half done", said)
            left = stored(database)
            assert 4 < left < MANY + 4
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

        again = stuck.json("trim", "--older-than", "1d")
        assert (again["removed"], again["kept"], again["dry_run"]) == (left - 5, 0, False)  # the newest stays
        assert again["bytes"] < again["bytes_before"]


@pytest.mark.parametrize(
    "wrong",
    [
        ["deliveries", "throw", "1"],
        ["deliveries", "--state", "lost"],
        ["deliveries", "--older-than", "long"],
        ["deliveries", "--limit", "0"],
        ["deliveries", "show"],
        ["trim"],
        ["trim", "--older-than", "-1d"],
    ],
)
async def test_a_wrong_call_is_answered_with_the_usage(stuck: Stuck, wrong: list[str]) -> None:
    run = stuck.run(*wrong)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"usage: agent-channel {wrong[0]}" in run.stderr


async def test_a_message_is_for_programs_too(stuck: Stuck) -> None:
    message = stuck.json("message", "2")
    assert (message["message_id"], message["room"], message["sender"], message["text"]) == (2, "hall", "planner", TEXT)


async def test_an_id_that_there_is_not_is_named(stuck: Stuck) -> None:
    assert "There is no delivery '99'" in stuck.refused("deliveries", "show", "99")
    assert "There is no delivery '1@nobody'" in stuck.refused("deliveries", "look", "1@nobody")
