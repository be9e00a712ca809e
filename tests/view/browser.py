"""Debian's Chromium without a window, driven by Playwright; a browser of its own is never fetched."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

REQUIRE = "AGENT_CHANNEL_REQUIRE_BROWSER"
"""Set in CI: without a browser the tests fail."""


def executable() -> str:
    """Skips the test, aloud, where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        (pytest.fail if os.environ.get(REQUIRE) else pytest.skip)("no Chromium: make install-browser")
    assert found is not None
    return found


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """`--no-sandbox`: its sandbox refuses root, as which CI runs; it opens nothing but our own page."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            await browser.close()
