"""SQLite's connection as the channel uses it: several statements in one call, no transaction in a file of another
schema, and its errors as the channel's own.
"""

import os
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from channel.errors import SchemaTooNew, StoreBroken, StoreBusy, StoreFull, StoreReadOnly
from channel.migrations import statements
from channel.place import has_no_room

BEGIN = "BEGIN IMMEDIATE;"
COMMIT = "COMMIT;"
SCHEMA_VERSION = "SELECT user_version FROM pragma_user_version;"


class _Connection(sqlite3.Connection):
    """Takes a text of several statements, all with the same parameters; the rows are those of all, in turn.

    Each call costs a hop to aiosqlite's thread and back, which takes longer than most statements.
    """

    schema: int

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        *first, last = _statements(sql)
        if not first:
            return self._one(last, parameters)
        fetched = self.cursor(_Fetched)
        # Each is read before the next: SQLite commits nothing while rows of a write are unread.
        fetched.rows = [row for each in (*first, last) for row in self._one(each, parameters).fetchall()]
        return fetched

    def _one(self, statement: str, parameters: Any) -> sqlite3.Cursor:
        if statement != BEGIN:
            return super().execute(statement, () if statement == COMMIT else parameters)
        begun = super().execute(statement)
        [(found,)] = super().execute(SCHEMA_VERSION)
        if found != self.schema:
            raise SchemaTooNew(found, self.schema)
        return begun


class _Fetched(sqlite3.Cursor):
    """Rows that were read already, for aiosqlite's `execute_fetchall`, which asks for all of them and nothing else."""

    rows: list[Any]

    def fetchall(self) -> list[Any]:
        return self.rows


def connection_of(schema: int) -> type[_Connection]:
    """No transaction of such a connection begins in a file of another schema."""
    return type("_ConnectionOfSchema", (_Connection,), {"schema": schema})


@cache
def _statements(text: str) -> tuple[str, ...]:
    return tuple(statements(text if sqlite3.complete_statement(text) else f"{text};"))


class sqlite_errors:  # noqa: N801
    """Turn SQLite's errors into the channel's, each with what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, sqlite3.Error) or isinstance(error, sqlite3.IntegrityError):
            return
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusy from error
        if "full" in text or ("I/O" in text and has_no_room(self._path)):
            raise StoreFull(str(self._path)) from error
        if "readonly" in text or not os.access(self._path.parent, os.W_OK):  # the log can't be made
            raise StoreReadOnly(str(self._path)) from error
        raise StoreBroken(str(self._path), text) from error
