"""A file that can't be used now: the error says which of the reasons, and nothing is half written."""

from pathlib import Path

import pytest

from channel.database import open_database
from channel.errors import NoStore, StoreFull


async def test_reading_where_nobody_has_joined_makes_no_channel(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "channel.db"
    with pytest.raises(NoStore, match="no session has joined"):
        async with open_database(path, durable=False, create=False):
            pass
    assert not path.parent.exists()


@pytest.mark.fault("F43")
async def test_a_full_disk_is_named_and_half_a_transaction_is_not_kept(tmp_path: Path) -> None:
    """SQLite's own limit of pages stands for the disk: the error is the same."""
    async with open_database(tmp_path / "channel.db", durable=False) as database:
        (pages,) = (await database.read("PRAGMA page_count"))[0]
        await database.read(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreFull, match="free some space"):
            async with database.transaction() as transaction:
                await transaction.run("CREATE TABLE junk (text TEXT)")
                await transaction.run("INSERT INTO junk VALUES (?)", ("x" * 100_000,))
        assert not await database.read("SELECT name FROM sqlite_master WHERE name = 'junk'")
