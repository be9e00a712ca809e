"""What the page is told, and a person's decisions through it: the rules are those of the command line."""

from typing import Any

import pytest

from tests.integration.stuck_deliveries import TEXT
from tests.unit.harness_adapters.view.conftest import View


async def got(view: View, path: str) -> Any:
    answer = await view.page.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_room_is_told_oldest_first_with_what_became_of_each_delivery(view: View) -> None:
    told = await got(view, "/api/messages?room=hall")
    assert [(each["message_id"], each["sender"], each["deliveries"][0]["state"]) for each in told["messages"]] == [
        (1, "planner", "seen"),
        (2, "planner", "uncertain"),
        (3, "planner", "pending"),
        (4, "builder", "accepted"),
    ]
    assert [each["deliveries"][0]["decisions"] for each in told["messages"]] == [
        [],
        ["look", "resend", "drop"],
        ["resend", "drop"],
        ["look"],
    ]
    assert not told["are_older"]


async def test_older_messages_come_a_page_at_a_time(view: View) -> None:
    before = await got(view, "/api/messages?room=hall&before=3")
    assert [each["message_id"] for each in before["messages"]] == [1, 2]
    assert (await got(view, "/api/messages?room=elsewhere"))["messages"] == []


async def test_a_delivery_is_told_with_all_that_happened_to_it(view: View) -> None:
    told = await got(view, "/api/deliveries/2")
    assert [event["event"] for event in told["events"]] == ["sent", "hand_over_recorded", "answer_lost"]
    assert told["address"].startswith("codex:") and told["key"].endswith(":2") and told["text_begins"] == TEXT


async def test_a_look_says_what_was_looked_at(view: View) -> None:
    answer = await view.page.post("/api/deliveries/2/look")
    look = answer.json()["look"]
    assert look["found"] == "its key is in neither place"
    assert [line.split()[0] for line in look["looked_at"]] == ["thread", "its", "its"]
    assert (answer.json()["delivery"]["state"], answer.json()["delivery"]["looks"]) == ("uncertain", 2)


async def test_a_look_that_finds_it_is_believed(view: View) -> None:
    key = (await view.snapshots.inspected(2)).key
    assert key is not None
    view.stuck.show_in_thread(key, "another text")
    answer = await view.page.post("/api/deliveries/2/look")
    assert answer.json()["delivery"]["state"] == "conflict"


async def test_send_again_sends_the_text_as_a_new_message(view: View) -> None:
    answer = await view.page.post("/api/deliveries/2/resend")
    assert answer.status_code == 200, answer.text
    sent = answer.json()["sent_again"]
    assert (await got(view, f"/api/messages/{sent['message_id']}"))["text"] == TEXT
    assert answer.json()["delivery"]["state"] == "withdrawn"


async def test_what_may_still_appear_is_sent_again_only_by_force(view: View) -> None:
    refused = await view.page.post("/api/deliveries/3/resend")
    assert (refused.status_code, refused.json()["may_be_forced"]) == (409, True)
    assert "--force" not in refused.json()["error"]  # the page has a button
    assert "it waits, and is delivered when" in refused.json()["error"]
    forced = await view.page.post("/api/deliveries/3/resend?force=1")
    assert forced.json()["sent_again"]["recipient"] == "reviewer"


async def test_drop_gives_a_delivery_up_once(view: View) -> None:
    dropped = await view.page.post("/api/deliveries/3/drop")
    assert (dropped.json()["delivery"]["state"], dropped.json()["delivery"]["decisions"]) == ("withdrawn", [])
    again = await view.page.post("/api/deliveries/3/drop")
    assert (again.status_code, again.json()["may_be_forced"]) == (409, False)
    assert "nothing is left to decide" in again.json()["error"]


@pytest.mark.parametrize("name", ["99", "0", "nine", "9" * 30, "2@builder", "%00", "-1"])
async def test_what_is_not_there_is_said_so(view: View, name: str) -> None:
    assert (await view.page.get(f"/api/deliveries/{name}")).status_code == 404
    assert (await view.page.get(f"/api/messages/{name}")).status_code == 404
    assert (await view.page.post(f"/api/deliveries/{name}/drop")).status_code == 404


async def test_nothing_handed_over_is_looked_for_where_it_is_not(view: View) -> None:
    refused = await view.page.post("/api/deliveries/3/look")
    assert refused.status_code == 409
    assert "handed over to nobody yet" in refused.json()["error"]
