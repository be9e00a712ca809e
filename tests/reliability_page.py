"""RELIABILITY.md: its tables are put there by the commands that measured them, between two comments."""

import os
import platform
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "RELIABILITY.md"


def put(name: str, text: str) -> None:
    """Replace what stands between the page's two comments of this name. Raises ValueError if there are none."""
    page = PAGE.read_text()
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{PAGE.name} has no place for {name!r}: add {begin} and {end}")
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown; every column but the first is of numbers."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def machine() -> str:
    """What it was measured on, in one line."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}"
    )
