"""The pages that a user reads, and what stands in them to be tried out: blocks of commands, of commands with their
output, tables and links."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.packaging.conftest import ROOT

README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))


class Shown(NamedTuple):
    """A command of a console block with what is printed under it."""

    command: str
    printed: str


def name_of(page: Path) -> str:
    """As a test's id."""
    return page.stem


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The lines of its `sh` blocks."""
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line]


def shown(page: Path) -> list[Shown]:
    """What its `console` blocks hold, in order. Each command is one of ours."""
    pieces = [piece for block in blocks(page, "console") for piece in block.split("$ agent-channel ")[1:]]
    return [Shown(command, printed) for command, _, printed in (piece.partition("\n") for piece in pieces)]


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = re.split(r"^##+ ", page.read_text().split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table[2:]]


def code(cell: str) -> list[str]:
    """What stands between backticks, single or double."""
    return [double or single for double, single in re.findall(r"``(.+?)``(?!`)|`([^`]+)`", cell)]


def said_of_ours(page: Path) -> list[list[str]]:
    """The words of each command of ours that stands in a line of text, without `agent-channel` itself."""
    spans = [span for span in code(without_blocks(page)) if span.startswith("agent-channel ")]
    return [span.split()[1:] for span in spans if "…" not in span]  # that is in errors, which begin so too


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Of its headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """What its links and pictures point to."""
    return re.findall(r"\]\(([^)\s]+)\)", without_blocks(page))
