"""What a page says that a command prints is what it prints: each console block is run again, in order."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.stuck_deliveries import stuck_deliveries
from tests.integration.test_install_command import Home
from tests.packaging.pages import PAGES, README, name_of, shown

pytestmark = pytest.mark.timeout(240)

DELIVERY_TOOLS = ("list", "show", "look", "resend", "drop")

AROUND_INSTALLATION = ("install", "status", "uninstall")
"""Run in a home with Codex's settings and what plays Claude Code; all others in one with stuck deliveries."""

STANDS_FOR = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "THREAD"),
    (r"\b[0-9a-f]{64}\b", "SHA256"),
    (r"agent-channel:[0-9a-f]{16}:", "agent-channel:CHANNEL:"),
    (r"Codex [0-9]+\.[0-9.]+", "Codex VERSION"),
    (r"\(process \d+\)", "(process ID)"),
    (r"[0-9.]+ MB", "SIZE MB"),
    (r"/[^\s\"]*/python[0-9.]*", "PYTHON"),
    (r"/[^\s\"]*/\.(codex|claude|agent-channel)\b", r"HOME/.\1"),
)
"""What differs from one machine and run to another."""

LEFT_OUT = "…\n"
"""A line that stands for any lines."""


def normalised(text: str) -> str:
    for pattern, word in STANDS_FOR:
        text = re.sub(pattern, word, text)
    return text.strip("\n") + "\n"


def fits(printed: str, on_page: str) -> bool:
    pieces = normalised(on_page).split(LEFT_OUT)
    return re.fullmatch("(?:.*\n)*".join(map(re.escape, pieces)), normalised(printed)) is not None


async def runners(root: Path) -> tuple[Callable[..., str], Callable[..., str]]:
    """What runs a command around installation, and what runs any other; each returns what is printed."""
    for name in ("mine", "stuck"):
        (root / name).mkdir()
    home = Home(root / "mine")
    home.has_claude()
    shutil.rmtree(home.cursor_config.parent)
    stuck = await stuck_deliveries(root / "stuck")

    def installing(*words: str) -> str:
        return home.run(*words).stdout

    def running(*words: str) -> str:
        run = stuck.run(*words)
        assert (run.returncode, run.stderr) == (1 if words[0] == "doctor" else 0, "")
        return run.stdout

    return installing, running


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=name_of)
async def test_a_page_shows_what_each_command_prints(tmp_path: Path, page: Path) -> None:
    installing, running = await runners(tmp_path)
    for command, printed in shown(page):
        words = shlex.split(command)
        now = (installing if words[0] in AROUND_INSTALLATION else running)(*words)
        assert fits(now, printed), f"agent-channel {command}\n{now}"


def test_the_readme_shows_each_tool_for_deliveries() -> None:
    words = [command.split()[:2] for command, _ in shown(README)]
    assert [word for first, word in words if first == "deliveries"] == ["--state", *DELIVERY_TOOLS[1:]]
    assert [first for first, _ in words if first != "deliveries"] == ["trim", "trim"]


def test_what_is_left_out_stands_for_whole_lines_and_nothing_else_may_differ() -> None:
    assert fits("a\nb\nc\n", "a\n…\nc\n")
    assert fits("a\nc\n", "a\n…\nc\n")
    assert fits("b\nc\n", "…\nc\n")
    assert not fits("a\nb\nd\n", "a\n…\nc\n")
    assert not fits("a\nbc\n", "a\n…\nc\n")
