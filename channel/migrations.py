"""The schema's steps: `sql/migrations/NNNN_*.sql`, applied in the order of their numbers."""

import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "sql" / "migrations"


class Migration(NamedTuple):
    """One step; `version` is the schema's number after it."""

    version: int
    sql: str


@cache
def load_migrations() -> tuple[Migration, ...]:
    """All steps, oldest first; their versions are 1, 2, 3 ... without a gap."""
    found = tuple(
        Migration(int(file.name[:4]), file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.sql"))
    )
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"the migrations in {FOLDER.name} are not numbered 1, 2, 3 ...")
    return found


def statements(script: str) -> Iterator[str]:
    """The script's statements one by one.

    Python's executescript commits what is open, and leaves half of a bad script behind (measured).
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        if not statement and (not line.strip() or line.lstrip().startswith("--")):
            continue
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if statement.strip():
        raise RuntimeError("a script ends in the middle of a statement")
