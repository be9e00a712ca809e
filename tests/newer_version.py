"""What a later version of agent-channel does to a channel's file while older ones have it open."""

import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = 99
UPGRADE = f"""
BEGIN IMMEDIATE;
ALTER TABLE connections RENAME COLUMN address TO seat;
ALTER TABLE waiters RENAME COLUMN address TO seat;
ALTER TABLE deliveries RENAME COLUMN address TO seat;
ALTER TABLE messages RENAME COLUMN text TO body;
ALTER TABLE deliveries ADD COLUMN owner TEXT NOT NULL DEFAULT '';
PRAGMA user_version = {SCHEMA};
COMMIT;
"""
"""Names that every part of the older version uses are gone."""


def upgrade(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(UPGRADE)


def contents(path: Path) -> list[str]:
    """All that is in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())
