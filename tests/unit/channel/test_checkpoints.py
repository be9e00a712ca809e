"""The write-ahead log is copied into the database by one process at a time: SQLite before 3.51.3 wants it so."""

import fcntl
import os
from pathlib import Path

import pytest

from channel import database as database_module
from channel.database import COMMITS_BETWEEN_CHECKPOINT_LOOKS, WAL_BYTES_BEFORE_CHECKPOINT, Database, open_database

PUT_ROOM = "INSERT INTO rooms (name, policy, created_at_ms) VALUES (hex(randomblob(8)), ?, 0)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "channel.db"


async def commit_until_a_look(database: Database, policy: str) -> None:
    for _ in range(COMMITS_BETWEEN_CHECKPOINT_LOOKS):
        async with database.transaction() as transaction:
            await transaction.run(PUT_ROOM, (policy,))


async def test_a_long_log_is_copied_into_the_database_by_whoever_holds_the_lock(path: Path) -> None:
    wal = Path(f"{path}-wal")
    big = "x" * (3 * WAL_BYTES_BEFORE_CHECKPOINT // COMMITS_BETWEEN_CHECKPOINT_LOOKS)

    async with open_database(path, durable=False) as database:
        held = os.open(f"{path}-checkpoint", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        await commit_until_a_look(database, big)
        grown = wal.stat().st_size
        assert grown > 2 * WAL_BYTES_BEFORE_CHECKPOINT
        assert path.stat().st_size < WAL_BYTES_BEFORE_CHECKPOINT  # nothing was copied under another's lock

        os.close(held)
        await commit_until_a_look(database, big)  # copied at the end, so the next begin at the log's start again
        await commit_until_a_look(database, big)
        assert path.stat().st_size > grown
        assert wal.stat().st_size < 2.5 * grown


async def test_a_checkpoint_that_fails_is_no_error_of_the_transaction_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "WAL_BYTES_BEFORE_CHECKPOINT", 0)
    async with open_database(path, durable=False) as database:
        Path(f"{path}-checkpoint").mkdir()
        await commit_until_a_look(database, "")
        (row,) = await database.read("SELECT count(*) FROM rooms")
    assert row[0] == COMMITS_BETWEEN_CHECKPOINT_LOOKS
