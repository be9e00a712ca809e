"""`python -m tests.view.screenshots FOLDER`: the page at two widths and in both schemes, to be looked at.

They are kept out of the repository: they show what a machine's fonts make of it.
"""

import argparse
import tempfile
from pathlib import Path

import anyio
from playwright.async_api import Browser

from tests.view.browser import chromium
from tests.view.served import Served, served
from tests.view.talk import QUIET_ROOM, talk

WIDTHS = {"wide": (1280, 860), "phone": (390, 844)}
SCHEMES = ("light", "dark")


async def shoot(browser: Browser, view: Served, folder: Path) -> None:
    for width, (x, y) in WIDTHS.items():
        for scheme in SCHEMES:
            context = await browser.new_context(viewport={"width": x, "height": y}, color_scheme=scheme)  # type: ignore[arg-type]
            page = await context.new_page()
            await page.goto(view.address)
            await page.locator(".message").first.wait_for()
            await page.screenshot(path=folder / f"{width}-{scheme}-end.png")
            await page.evaluate("scrollTo(0, 0)")
            await page.screenshot(path=folder / f"{width}-{scheme}-top.png")
            await page.locator(".message:last-child summary").last.click()
            await page.locator(".message .record").first.wait_for()
            await page.screenshot(path=folder / f"{width}-{scheme}-open.png")
            await page.locator(".stuck-list button[data-decision=look]").first.click()
            await page.locator(".stuck-list .said p").wait_for()
            await page.locator(".stuck-list button[data-decision=resend]").first.click()
            await page.screenshot(path=folder / f"{width}-{scheme}-ask.png")
            await page.keyboard.press("Escape")
            await page.locator("#hour").evaluate("it => it.open = true")
            await page.locator("#hour .as-table > summary").click()
            await page.locator("#hour").scroll_into_view_if_needed()
            await page.screenshot(path=folder / f"{width}-{scheme}-hour.png")
            await page.get_by_role("button", name=QUIET_ROOM).click()
            await page.locator("#empty").wait_for()
            await page.screenshot(path=folder / f"{width}-{scheme}-quiet.png")
            await context.close()


async def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as root:
        async with talk(Path(root)) as made, chromium() as browser:
            with served(made.stuck.database) as view:
                await shoot(browser, view, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    anyio.run(main, folder)
