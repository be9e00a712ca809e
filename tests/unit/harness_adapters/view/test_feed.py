"""What an open page is sent: first all, then what is new, and nothing while nothing happens."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest

from harness_adapters.composition import open_channel
from harness_adapters.view.feed import BEAT_S, PAGES_MAX, POLL_S, PRESENCE_S, TooManyPages
from harness_adapters.view.snapshots import PAGE_MESSAGES, TEXT_CHARACTERS
from tests.unit.harness_adapters.view.conftest import View

SOON_S = 20


_END = b"event: end"


class Page:
    """One open page; `next` is the next event, with the clock moved until there is one."""

    def __init__(self, view: View, stream: AsyncGenerator[bytes, None]) -> None:
        self.view = view
        self.stream = stream
        self.waited_s = 0.0

    async def next(self) -> tuple[str, Any]:
        found: list[bytes] = []
        self.waited_s = 0.0

        async def take(done: anyio.CancelScope) -> None:
            found.append(await anext(self.stream, _END))
            done.cancel()

        with anyio.fail_after(SOON_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take, tasks.cancel_scope)
                while not found:
                    await self.view.clock.until_asleep(POLL_S)
                    self.view.clock.advance(POLL_S)
                    self.waited_s += POLL_S
        head, _, data = found[0].decode().partition("\ndata: ")
        return head.removeprefix("event: ").strip(), json.loads(data) if data else None

    async def all_of(self, count: int) -> dict[str, Any]:
        return dict([await self.next() for _ in range(count)])


@asynccontextmanager
async def opened(view: View, room: str = "hall") -> AsyncIterator[Page]:
    """A page that was sent all that there is."""
    async with aclosing(view.feed.open(room)) as stream:
        page = Page(view, stream)
        assert list(await page.all_of(4)) == ["rooms", "stuck", "messages", "hour"]
        yield page


async def test_a_new_page_is_sent_all_that_there_is(view: View) -> None:
    async with aclosing(view.feed.open("")) as stream:
        first = await Page(view, stream).all_of(4)
    assert [(room["name"], [role["name"] for role in room["roles"]]) for room in first["rooms"]["rooms"]] == [
        ("hall", ["planner", "builder", "reviewer"])
    ]
    assert [each["delivery_id"] for each in first["stuck"]["deliveries"]] == [2]
    messages = first["messages"]
    assert (messages["room"], messages["is_all"], messages["are_older"]) == ("hall", True, False)
    assert [each["message_id"] for each in messages["messages"]] == [1, 2, 3, 4]
    assert len(first["hour"]["minutes"]) == 60


async def test_a_message_of_another_process_and_its_states_come_by_themselves(view: View) -> None:
    async with opened(view) as page, open_channel(view.stuck.database, durable=False, clock=view.clock) as other:
        await other.sending.send("session:planner", "And now?", ["reviewer"], None)
        news = await page.all_of(2)
        assert page.waited_s <= 2 * POLL_S
        assert [each["text_begins"] for each in news["messages"]["messages"]] == ["And now?"]
        assert not news["messages"]["is_all"]
        assert news["rooms"]["rooms"][0]["roles"][2]["waiting"] == 2
        await other.deliveries.note_waiting("session:reviewer", "waiter offline")
        name, changed = await page.next()
        assert (name, [each["message_id"] for each in changed["messages"]]) == ("messages", [3, 5])
        assert [each["deliveries"][0]["detail"] for each in changed["messages"]] == ["waiter offline"] * 2


async def test_what_this_process_decides_comes_too(view: View) -> None:
    """SQLite tells a connection nothing of its own commits."""
    async with opened(view) as page:
        await view.page.post("/api/deliveries/2/drop")
        news = await page.all_of(2)
        assert (news["stuck"]["deliveries"], page.waited_s <= 2 * POLL_S) == ([], True)
        assert [each["message_id"] for each in news["messages"]["messages"]] == [2]


async def test_while_nothing_happens_a_page_is_sent_a_sign_of_life_and_nothing_else(view: View) -> None:
    async with opened(view) as page:
        assert await page.next() == (": still here", None)
        assert BEAT_S - PRESENCE_S <= page.waited_s <= BEAT_S + PRESENCE_S


async def test_with_no_page_open_nothing_asks_the_file(view: View) -> None:
    """What sleeps then is the process's lease keeper, if anything."""
    async with opened(view):
        pass
    assert POLL_S not in view.clock.asleep()


async def test_more_than_a_page_at_once_is_sent_as_a_new_beginning(view: View) -> None:
    """Else the page would show a gap as if nothing had been said in it."""
    async with opened(view) as page, open_channel(view.stuck.database, durable=False, clock=view.clock) as other:
        for number in range(PAGE_MESSAGES + 1):
            await other.sending.send("session:planner", f"message {number}", ["reviewer"], None)
        news = await page.all_of(2)
        messages = news["messages"]
        assert (messages["is_all"], messages["are_older"], len(messages["messages"])) == (True, True, PAGE_MESSAGES)


async def test_what_becomes_of_a_message_that_is_among_the_newest_no_more_comes_too(view: View) -> None:
    """Else a page that stays open would go on to say that it waits."""
    async with opened(view) as page, open_channel(view.stuck.database, durable=False, clock=view.clock) as other:
        for _ in range(2):  # less than a page at once
            for number in range(PAGE_MESSAGES - 10):
                sent = await other.sending.send("session:planner", f"message {number}", ["reviewer"], None)
            await page.all_of(2)
        await view.page.post("/api/deliveries/3/drop")
        changed = (await page.all_of(2))["messages"]
        [message] = changed["messages"]
        assert (message["message_id"], message["deliveries"][0]["state"]) == (3, "withdrawn")
        assert sent.message_id - 3 > PAGE_MESSAGES
        assert not changed["is_all"]


async def test_a_long_text_is_cut_and_says_how_long_it_is(view: View) -> None:
    async with opened(view) as page, open_channel(view.stuck.database, durable=False, clock=view.clock) as other:
        await other.sending.send("session:planner", "x" * 1_000_000, ["reviewer"], None)
        [message] = (await page.all_of(2))["messages"]["messages"]
        assert (len(message["text_begins"]), message["text_characters"]) == (TEXT_CHARACTERS, 1_000_000)


async def test_trouble_with_the_file_is_said_and_its_end_too(view: View) -> None:
    aside = view.stuck.database.with_name("aside.db")
    async with opened(view) as page:
        view.stuck.database.rename(aside)
        name, trouble = await page.next()
        assert name == "trouble" and "was moved away" in trouble["text"]
        aside.rename(view.stuck.database)
        assert await page.next() == ("trouble", {"text": ""})


async def test_no_more_pages_than_a_bound_are_served_at_once(view: View) -> None:
    async with AsyncExitStack() as pages:
        for _ in range(PAGES_MAX):
            await pages.enter_async_context(opened(view))
        with pytest.raises(TooManyPages):
            view.feed.open("hall")
        refused = await view.page.get("/api/feed")
        assert (refused.status_code, "close one of them" in refused.json()["error"]) == (503, True)
    async with opened(view):
        pass


async def test_a_stream_ends_with_the_view(view: View) -> None:
    async with opened(view) as page:
        view.feed.end()
        assert (await page.next(), page.waited_s) == (("end", None), POLL_S)


async def test_a_role_whose_session_ends_is_shown_so_though_nothing_was_written(view: View) -> None:
    """Its lease runs out: 60 s, on this clock."""
    async with open_channel(view.stuck.database, durable=False, clock=view.clock) as other:
        await other.leases.take("session:reviewer", other.process.to_text(), "")
        async with opened(view) as page:
            while (event := await page.next())[0] != "rooms":
                pass
            assert event[1]["rooms"][0]["roles"][2]["waiter_active"] is False
