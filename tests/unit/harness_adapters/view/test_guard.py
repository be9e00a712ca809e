"""Who may ask the view, and what every answer forbids a browser."""

import pytest

from harness_adapters.view.guard import SECURITY_HEADERS, TOKEN_HEADER
from tests.unit.harness_adapters.view.conftest import ORIGIN, PORT, TOKEN, View

LOOK = "/api/deliveries/2/look"
DROP = "/api/deliveries/2/drop"


async def state(view: View) -> str:
    return (await view.snapshots.inspected(2)).state


@pytest.mark.parametrize("host", ["attacker.example", f"attacker.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}"])
@pytest.mark.parametrize("path", ["/", "/view.js", "/api/messages?room=hall", "/nothing"])
async def test_a_name_that_was_made_to_lead_here_is_refused(view: View, host: str, path: str) -> None:
    """DNS rebinding: the browser thinks that it asks the attacker's own site, with the token or without."""
    answer = await view.page.get(path, headers={"host": host, "origin": f"http://{host}"})
    assert answer.status_code == 421


async def test_localhost_is_this_machine_too(view: View) -> None:
    host = f"localhost:{PORT}"
    answer = await view.page.get("/api/messages?room=hall", headers={"host": host, "origin": f"http://{host}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("token", [None, "", "0" * 32, TOKEN[:-1], f"{TOKEN}0", "é"])
@pytest.mark.parametrize("path", ["/api/feed", "/api/messages", "/api/messages/1", "/api/deliveries/2", "/api/nothing"])
async def test_without_the_token_nothing_of_the_channel_is_told(view: View, path: str, token: str | None) -> None:
    headers = {} if token is None else {TOKEN_HEADER.encode(): token.encode()}
    answer = await view.stranger.get(path, headers=headers)
    assert (answer.status_code, list(answer.json())) == (401, ["error"])


async def test_a_token_in_the_query_or_in_a_cookie_counts_for_nothing(view: View) -> None:
    """The one stands in logs, the other goes to every port of the machine."""
    answer = await view.stranger.get(f"/api/messages/1?token={TOKEN}", headers={"cookie": f"{TOKEN_HEADER}={TOKEN}"})
    assert answer.status_code == 401
    assert "set-cookie" not in (await view.page.get("/")).headers


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://attacker.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": ORIGIN, "sec-fetch-site": "same-site"},
        {},
    ],
)
async def test_a_decision_from_elsewhere_than_our_page_is_not_taken(view: View, headers: dict[str, str]) -> None:
    """Even with the token; the last one names no page at all."""
    answer = await view.stranger.post(DROP, headers={TOKEN_HEADER: TOKEN, **headers})
    assert (answer.status_code, await state(view)) == (403, "uncertain")


async def test_a_form_of_another_site_can_not_drop_anything(view: View) -> None:
    """What a browser sends for one: no token, the other site as the origin."""
    headers = {"origin": "https://attacker.example", "content-type": "application/x-www-form-urlencoded"}
    answer = await view.stranger.post(DROP, headers=headers, content=f"token={TOKEN}")
    assert (answer.status_code, await state(view)) == (403, "uncertain")


async def test_a_decision_is_no_link(view: View) -> None:
    assert (await view.page.get(DROP)).status_code == 405
    assert await state(view) == "uncertain"


async def test_no_answer_invites_another_site_in(view: View) -> None:
    preflight = await view.stranger.options(DROP, headers={"origin": "https://attacker.example"})
    for answer in (preflight, await view.page.get("/"), await view.page.get("/api/messages/1")):
        assert [name for name in answer.headers if name.startswith("access-control-")] == []


@pytest.mark.parametrize("path", ["/", "/view.js", "/api/messages/1", "/api/messages/99", "/nothing", LOOK])
async def test_every_answer_and_every_refusal_forbids_what_the_page_does_not_need(view: View, path: str) -> None:
    for client in (view.page, view.stranger):
        answer = await client.get(path)
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "'unsafe" not in SECURITY_HEADERS["content-security-policy"]
    assert "default-src 'none'" in SECURITY_HEADERS["content-security-policy"]


async def test_the_pages_own_files_hold_nothing_of_the_channel_and_need_no_token(view: View) -> None:
    """They can't have it yet: it is behind the `#` of the address, which no browser sends."""
    page = await view.stranger.get("/")
    assert page.status_code == 200 and TOKEN not in page.text
    assert page.headers["content-type"].startswith("text/html")
    assert (await view.stranger.get("/view.js")).headers["content-type"].startswith("text/javascript")
    for outside in ("/view.py", "/../guard.py", "/%2e%2e/guard.py", "/page/view.js", "/index.html"):
        assert (await view.stranger.get(outside)).status_code == 404
