"""SQLite without aiosqlite's thread: each call is a turn, and runs on the real file in this thread.

It stands in for `aiosqlite.connect`, so that `channel/database.py` runs as it is: its pragmas, its connection
class, its migrations.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiosqlite

from channel.database import BUSY_TIMEOUT_MS
from channel.queries import load_queries
from tests.simulation.machine import CURRENT, Process, turn

_SETTING = re.compile(r"PRAGMA \w+=|SELECT user_version")
"""What a connection sets or asks when it is opened; others notice nothing of it, and no choice is spent on it."""

LOCK_S_MAX = BUSY_TIMEOUT_MS / 1_000

_BEGIN = "BEGIN IMMEDIATE;\n"
"""In front of a transaction's first statement."""


class SimulatedConnection:
    """What `channel.database` uses of an aiosqlite connection."""

    def __init__(self, process: Process, connection: sqlite3.Connection) -> None:
        self._process = process
        self._connection = connection

    @property
    def row_factory(self) -> Any:
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._connection.row_factory = factory

    async def execute_fetchall(self, sql: str, parameters: Any = ()) -> list[Any]:
        if "busy_timeout" in sql:
            return []  # SQLite would wait in real time
        what = _names().get(sql.removeprefix(_BEGIN)) or sql.partition("\n")[0][:40]
        if not _SETTING.match(sql):
            await turn(what)
        began_s = self._now_s()
        while True:
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or self._now_s() - began_s >= LOCK_S_MAX:
                    raise
            await turn(f"{what} (locked)", self._lock_may_be_free(began_s))

    async def interrupt(self) -> None:
        """No statement goes on after its caller has gone: each runs within one turn."""

    async def close(self) -> None:
        await turn("closes the database")
        self._connection.close()
        self._process.database = None

    def _lock_may_be_free(self, began_s: float) -> Callable[[], bool]:
        def may_go() -> bool:
            others = (process.database for process in self._process.machine.processes if not process.dead)
            is_held = any(database is not None and database.in_transaction for database in others)
            return not is_held or self._now_s() - began_s >= LOCK_S_MAX

        return may_go

    def _now_s(self) -> float:
        return self._process.machine.loop.time()


@cache
def _names() -> dict[str, str]:
    return {text: name for name, text in load_queries().items()}


async def _connect(path: Path, **options: Any) -> SimulatedConnection:
    process = CURRENT.get()
    await turn("opens the database")
    connection = process.database = sqlite3.connect(path, timeout=0, **options)
    return SimulatedConnection(process, connection)


@contextmanager
def simulated_driver() -> Iterator[None]:
    """While the body runs, the product's databases are opened so."""
    with patch.object(aiosqlite, "connect", _connect):
        yield
