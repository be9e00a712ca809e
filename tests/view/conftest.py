"""A talk, the real view of it, and a page in Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page

from tests.view.browser import chromium
from tests.view.served import Served, served
from tests.view.talk import Talk, talk

WAIT_MS = 60_000
"""A wait that ends when what is waited for is there; a busy machine gets this long."""


@dataclass
class Shown:
    """`page` shows ROOM; `complaints`: what its console and its scripts complained of."""

    talk: Talk
    view: Served
    browser: Browser
    page: Page
    complaints: list[str]

    _contexts: list[BrowserContext] = field(default_factory=list)

    async def open(self, **options: object) -> Page:
        """One more page, in a browser context of its own."""
        context = await self.browser.new_context(**options)  # type: ignore[arg-type]
        self._contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        page = await context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    async def close(self, keep: int = 0) -> None:
        """Close all pages but the first ones."""
        while len(self._contexts) > keep:
            await self._contexts.pop().close()


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for all: what tests must not share is kept apart by browser contexts."""
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def shown(browser: Browser, tmp_path: Path) -> AsyncIterator[Shown]:
    """No page complains of anything in the end."""
    async with _showing(browser, tmp_path) as shown:
        yield shown
        assert shown.complaints == []


@pytest.fixture(scope="module")
async def shared(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shown]:
    async with _showing(browser, tmp_path_factory.mktemp("shared")) as shown:
        yield shown


@pytest.fixture
async def only_looked_at(shared: Shown) -> AsyncIterator[Shown]:
    """The same for all the tests that change nothing in the channel."""
    yield shared
    await shared.close(keep=1)
    assert shared.complaints == []


@asynccontextmanager
async def _showing(browser: Browser, root: Path) -> AsyncIterator[Shown]:
    async with talk(root) as made:
        with served(made.stuck.database) as view:
            shown = Shown(made, view, browser, None, [])  # type: ignore[arg-type]
            shown.page = await shown.open()
            await shown.page.goto(view.address)
            await shown.page.locator(".message").first.wait_for()
            yield shown
            await shown.close()
