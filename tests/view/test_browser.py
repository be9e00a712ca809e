"""The live view as a person has it: the real command, in a real browser."""

import re
from itertools import pairwise

import pytest
from playwright.async_api import Request, expect

from channel.delivery_states import Event
from channel.membership import Caller
from harness_adapters.view.guard import TOKEN_HEADER
from tests.forged import kind
from tests.view.conftest import WAIT_MS, Shown
from tests.view.contrast import CONTRAST_MIN, FAINT
from tests.view.screenshots import SCHEMES, WIDTHS
from tests.view.served import served
from tests.view.talk import POLICY, QUIET_ROOM, ROOM

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

expect.set_options(timeout=WAIT_MS)

STUCK = "#stuck-list > li"


async def test_a_message_appears_without_a_reload_and_changes_its_state(shown: Shown) -> None:
    page, talk = shown.page, shown.talk
    await page.evaluate("globalThis.wasHereBefore = true")
    delivery = await talk.send("planner", "Is the branch pushed?")
    last = page.locator(".message:last-child")
    await expect(last.locator(".text")).to_have_text("Is the branch pushed?")
    await expect(page.locator("#announced")).to_contain_text("from planner")
    row = last.locator(".delivery")
    await expect(row).to_have_attribute("data-state", "pending")
    await talk.hand_over("builder")
    await expect(row).to_have_attribute("data-state", "handed_over")
    await talk.record(delivery, Event.ANSWERED)
    await expect(row.locator(".state")).to_have_text("accepted")
    await talk.record(delivery, Event.KEY_IN_ITEMS)
    await expect(row.locator(".state")).to_have_text("seen")
    await expect(row.locator(".steps")).to_contain_text("seen +")
    assert await page.evaluate("globalThis.wasHereBefore")


async def test_a_delivery_that_becomes_uncertain_is_put_before_the_person(shown: Shown) -> None:
    page, talk = shown.page, shown.talk
    await expect(page.locator("#stuck-count")).to_have_text("1 to decide")
    delivery = await talk.send("planner", "Was this lost?")
    await talk.hand_over("builder")
    await talk.record(delivery, Event.ANSWER_LOST)
    await expect(page.locator(STUCK)).to_have_count(2)
    await expect(page.locator(STUCK).first).to_contain_text("Was this lost?")
    await expect(page.locator("#stuck-count")).to_have_text("2 to decide")
    await expect(page.locator("#announced")).to_contain_text(f"delivery {delivery} to builder is uncertain")


async def test_a_message_to_many_tells_their_number_and_each_if_it_is_asked_for(shown: Shown) -> None:
    page, channel = shown.page, shown.talk.channel
    process = channel.process.to_text()
    for number in range(12):
        await channel.membership.join(Caller(f"claude:{number}", "claude", process, process), ROOM, f"r{number}", None)
    await channel.sending.send(shown.talk.callers["planner"].address, "To all of you.", None, ROOM)
    last = page.locator(".message:last-child")
    await expect(last.get_by_text("14 recipients: 14 pending")).to_be_visible()
    await expect(last.get_by_text("r11")).to_be_hidden()
    await last.get_by_text("14 recipients").click()
    await expect(last.get_by_text("r11")).to_be_visible()


async def test_rooms_roles_and_the_policy_are_shown_as_they_are(shown: Shown) -> None:
    page = shown.page
    await expect(page.get_by_role("heading", name=ROOM)).to_be_visible()
    await expect(page.locator("#policy")).to_have_text(POLICY)
    roles = page.get_by_role("list", name=f"Roles in {ROOM}").get_by_role("listitem")
    await expect(roles.nth(0)).to_contain_text("active")
    await expect(roles.nth(2)).to_contain_text("open, no waiter since")
    await shown.talk.channel.leases.release(shown.talk.leases["planner"])
    await expect(roles.nth(0)).to_contain_text("open, no waiter since")


async def test_another_room_is_a_click_away_and_a_reload_shows_it_again(shown: Shown) -> None:
    page = shown.page
    await page.get_by_role("button", name="hall").click()
    await expect(page.locator(".message")).to_have_count(4)
    await expect(page.get_by_role("button", name="hall")).to_have_attribute("aria-current", "true")
    await page.reload()
    await expect(page.locator(".message")).to_have_count(4)


async def test_look_again_says_what_was_looked_at(shown: Shown) -> None:
    page = shown.page
    stuck = page.locator(STUCK)
    await expect(stuck).to_contain_text("found in neither since")
    await stuck.get_by_role("button", name="Look again").click()
    await expect(stuck.locator(".said")).to_contain_text("its key is in neither place")
    await expect(stuck.locator(".said")).to_contain_text("its queue: 0 waiting")


async def test_send_again_asks_first_and_then_sends_the_text_as_a_new_message(shown: Shown) -> None:
    page = shown.page
    await page.get_by_role("button", name="hall").click()
    stuck = page.locator(STUCK)
    again = stuck.get_by_role("button", name="Send again")
    await again.click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_be_hidden()
    assert shown.talk.stuck.state(2) == "uncertain"
    await again.click()
    await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    await expect(page.locator("#outcome")).to_contain_text("Sent again to builder as message")
    await expect(stuck).to_have_count(0)
    await expect(page.locator(".message:last-child .text")).to_contain_text("one reads, one checks")
    assert shown.talk.stuck.state(2) == "withdrawn"


async def test_drop_asks_first_and_then_gives_the_delivery_up(shown: Shown) -> None:
    page = shown.page
    await page.locator(STUCK).get_by_role("button", name="Drop").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("can't be called back")
    await dialog.get_by_role("button", name="Drop it").click()
    await expect(page.locator("#outcome")).to_contain_text("is withdrawn")
    await expect(page.locator("#stuck")).to_be_hidden()
    assert shown.talk.stuck.state(2) == "withdrawn"


async def test_a_refusal_is_shown_with_its_reason_and_can_be_forced_only_after_it(shown: Shown) -> None:
    """The message waits for someone who is offline: sent again it would be read twice."""
    page = shown.page
    await page.get_by_role("button", name="hall").click()
    row = page.locator(".delivery", has_text="reviewer").first
    await row.locator("summary").click()
    force = row.get_by_role("button", name="Send it all the same")
    await expect(row.get_by_role("button", name="Send again")).to_be_visible()
    await expect(force).to_be_hidden()
    await row.get_by_role("button", name="Send again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    await expect(row.locator(".said")).to_contain_text("it waits, and is delivered when its recipient can be given it")
    await force.click()
    await page.get_by_role("dialog").get_by_role("button", name="Send it all the same").click()
    await expect(page.locator("#outcome")).to_contain_text("Sent again to reviewer")
    assert [each for each in shown.complaints if "409" not in each] == []
    shown.complaints.clear()


async def test_no_text_becomes_markup(shown: Shown) -> None:
    """A script, an image with a handler, and all that other receivers were tried with."""
    page, talk = shown.page, shown.talk
    await page.evaluate("globalThis.ran = 0")
    scripts = [
        "<script>globalThis.ran += 1</script>",
        "<img src=x onerror='globalThis.ran += 1'>",
        "</p></li><h1>agent-channel</h1><a href='javascript:globalThis.ran += 1'>click</a>",
        "${globalThis.ran += 1} {{constructor.constructor('globalThis.ran += 1')()}}",
    ]
    for text in (*kind("markup").values(), *scripts):
        await talk.send("planner", text)
    written = page.locator(".message .text")
    await expect(written.last).to_have_text(scripts[-1])
    assert (await written.all_inner_texts())[-len(scripts) :] == scripts
    assert await page.evaluate("globalThis.ran") == 0
    assert await page.locator(".text :not(.control)").count() == 0


async def test_a_text_can_not_turn_the_direction_of_what_is_read(shown: Shown) -> None:
    await shown.talk.send("planner", "safe \u202egnp.exe\u202c\u2066x\u2069\u200b end")
    await expect(shown.page.locator(".message:last-child .text")).to_have_text(
        "safe U+202Egnp.exeU+202CU+2066xU+2069U+200B end"
    )


async def test_a_long_text_is_shown_whole_when_it_is_asked_for(shown: Shown) -> None:
    page = shown.page
    text = "\n".join(f"line {number}" for number in range(2_000))
    await shown.talk.send("planner", text)
    last = page.locator(".message:last-child")
    await expect(last.locator(".text")).to_contain_text("line 5")
    assert "line 1999" not in await last.inner_text()
    await last.get_by_role("button", name="Show all").click()
    await expect(last.locator(".text")).to_have_text(text)


async def test_nothing_is_asked_of_anyone_else_and_the_token_is_never_in_an_address(only_looked_at: Shown) -> None:
    asked: list[Request] = []
    page = await only_looked_at.open()
    page.on("request", lambda request: asked.append(request))
    await page.goto(only_looked_at.view.address)
    await page.locator(".message").first.wait_for()
    assert len(asked) > 5
    origin, token = only_looked_at.view.origin, only_looked_at.view.token
    assert [request.url for request in asked if not request.url.startswith(f"{origin}/")] == []
    assert [request.url for request in asked if token in request.url.partition("#")[0]] == []
    assert token not in page.url
    assert await page.context.cookies() == []


async def test_without_the_token_the_page_says_what_to_do_and_shows_nothing(only_looked_at: Shown) -> None:
    page = await only_looked_at.open()
    await page.goto(only_looked_at.view.origin)
    await expect(page.get_by_role("alert")).to_contain_text("open the address that `agent-channel view` printed")
    await page.goto(f"{only_looked_at.view.origin}/#{'0' * 32}")
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("The token is missing or wrong")
    assert await page.locator(".message").count() == 0
    assert only_looked_at.complaints and all("401" in each for each in only_looked_at.complaints)
    only_looked_at.complaints.clear()


async def test_a_foreign_host_is_refused_by_the_real_server(only_looked_at: Shown) -> None:
    """As a browser asks whose name server leads attacker.example to this machine."""
    request = only_looked_at.page.context.request
    headers = {"host": "attacker.example", TOKEN_HEADER: only_looked_at.view.token}
    for path in ("/", "/api/messages?room=hall"):
        answer = await request.get(f"{only_looked_at.view.origin}{path}", headers=headers)
        assert answer.status == 421


async def test_a_page_of_another_site_can_neither_read_nor_decide(only_looked_at: Shown) -> None:
    """Another origin of this very machine; it even knows the token."""
    origin, token = only_looked_at.view.origin, only_looked_at.view.token
    other = await only_looked_at.open()
    await other.route(
        "http://attacker.example/**", lambda route: route.fulfill(body="<h1>hi</h1>", content_type="text/html")
    )
    await other.goto("http://attacker.example/")
    tried = """async ([origin, token]) => {
      const header = {"X-Agent-Channel-Token": token};
      const outcome = async (asked) => { try { return (await asked).type; } catch { return "failed"; } };
      const drop = `${origin}/api/deliveries/2/drop`;
      return [
        await outcome(fetch(`${origin}/api/messages/1`, {headers: header})),
        await outcome(fetch(drop, {method: "POST", headers: header})),
        await outcome(fetch(drop, {method: "POST", mode: "no-cors", body: `token=${token}`})),
        await outcome(fetch(`${origin}/`)),
      ];
    }"""
    assert await other.evaluate(tried, [origin, token]) == ["failed", "failed", "failed", "failed"]
    assert only_looked_at.talk.stuck.state(2) == "uncertain"
    only_looked_at.complaints.clear()


async def test_the_page_can_not_be_framed(only_looked_at: Shown) -> None:
    """Else a click on another page could be a click on Drop."""
    other = await only_looked_at.open()
    html = f"<iframe src='{only_looked_at.view.address}'></iframe>"
    await other.route("http://attacker.example/**", lambda route: route.fulfill(body=html, content_type="text/html"))
    await other.goto("http://attacker.example/")
    frame = other.frames[1]
    await frame.wait_for_load_state()
    assert await frame.locator("#messages").count() == 0
    only_looked_at.complaints.clear()


async def test_every_decision_can_be_reached_and_taken_with_the_keyboard(shown: Shown) -> None:
    page = shown.page
    await page.evaluate("scrollTo(0, 0)")
    reached = []
    for _ in range(30):
        await page.keyboard.press("Tab")
        name = await page.evaluate("document.activeElement.innerText.trim()")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus is not seen on {name}"
        reached.append(name.partition("\n")[0])
        if name.startswith("Drop"):
            break
    assert reached[0] == "Skip to the conversation"
    assert [name.split(" for ")[0] for name in reached[-3:]] == ["Look again", "Send again", "Drop"]
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    assert await page.evaluate("document.activeElement.id") == "ask-no"
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert (await page.evaluate("document.activeElement.innerText")).startswith("Drop")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#outcome")).to_contain_text("is withdrawn")
    await expect(page.locator("#room-title")).to_be_focused()


async def test_a_screen_reader_finds_landmarks_headings_names_and_the_charts_numbers(only_looked_at: Shown) -> None:
    page = only_looked_at.page
    for role, name in (
        ("banner", None),
        ("main", None),
        ("navigation", "Rooms"),
        ("region", "Waits for your decision"),
        ("region", ROOM),
        ("img", "Delivery times and waiting deliveries over the last hour"),
    ):
        await expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)  # type: ignore[arg-type]
    levels = await page.locator("h1, h2, h3").evaluate_all("all => all.map(it => Number(it.tagName[1]))")
    assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = await page.locator("button, a, summary").evaluate_all(
        "all => all.filter(it => it.checkVisibility() && !it.textContent.trim()).length"
    )
    assert unnamed == 0
    await page.locator("#hour .as-table > summary").click()
    table = page.get_by_role("table", name="Each minute's deliveries")
    await expect(table.get_by_role("columnheader")).to_have_text(["Minute", "Sent", "Accepted", "Seen", "Waiting"])
    assert await table.get_by_role("rowheader").count() >= 20


async def test_a_page_whose_view_ended_says_so_and_what_to_do_when_another_has_begun(shown: Shown) -> None:
    page, view = shown.page, shown.view
    assert view.end() == (130, "", "")
    await expect(page.locator("#connection")).to_have_text("not connected: trying again")
    await expect(page.locator(".message").first).to_be_visible()
    with served(shown.talk.stuck.database, "--port", view.origin.rpartition(":")[2]):
        await expect(page.get_by_role("alert")).to_contain_text("open the address that `agent-channel view` printed")
    shown.complaints.clear()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
async def test_all_is_readable_at_each_width_in_each_scheme(only_looked_at: Shown, width: str, scheme: str) -> None:
    """Nothing is wider than the window, and each text stands out from its ground as WCAG AA asks (4.5 to 1)."""
    x, y = WIDTHS[width]
    page = await only_looked_at.open(viewport={"width": x, "height": y}, color_scheme=scheme)
    await page.goto(only_looked_at.view.address)
    await page.locator(".message").first.wait_for()
    await page.locator(".message:last-child summary").last.click()
    await page.locator(".message .record").first.wait_for()
    for room in (ROOM, "hall", QUIET_ROOM):
        await page.locator(".room", has_text=re.compile(f"^{room}")).click()
        await expect(page.locator("#room-title")).to_have_text(room)
        assert await page.evaluate("document.documentElement.scrollWidth") <= x
        assert await page.evaluate(FAINT, CONTRAST_MIN) == []
