"""A file that can't be used now: the error says which of the reasons, and nothing is half written."""

import os
from pathlib import Path

import pytest

from channel.database import open_database
from channel.errors import NoStore, StoreBroken, StoreFull, StoreReadOnly
from tests.small_disk import needs_root, small_disk
from tests.unit.world import World, claude, codex


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


@needs_root
@pytest.mark.fault("F43")
async def test_a_send_on_a_full_disk_is_refused_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        async with World(disk.folder).process() as channel:
            await channel.join(claude("ann"), "boss")
            await channel.join(codex("thread"), "worker")
            disk.fill()
            with pytest.raises(StoreFull, match="free some space and try again"):
                await channel.send("ann", "worker")
            assert await channel.states() == {}
            disk.free()
            assert (await channel.send("ann", "worker")).message_id == 1
            assert await channel.states() == {1: "pending"}


@needs_root
@pytest.mark.fault("F43")
async def test_a_new_channel_on_a_full_disk_is_refused_as_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        disk.fill()
        with pytest.raises(StoreFull, match="free some space"):
            async with open_database(disk.folder / "channel.db", durable=False):
                pass
        disk.free()
        async with open_database(disk.folder / "channel.db", durable=False):
            pass


@needs_root
@pytest.mark.fault("F43")
@pytest.mark.parametrize("exists", [True, False])
async def test_a_read_only_disk_is_named_with_what_to_do(tmp_path: Path, exists: bool) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.folder / "channel.db"
        if exists:
            async with open_database(path, durable=False):
                pass
        disk.make_read_only()
        with pytest.raises(StoreReadOnly, match="make it writable, or name another file"):
            async with open_database(path, durable=False):
                pass
        assert [file.name for file in disk.folder.iterdir()] == [path.name] * exists


@pytest.mark.fault("F43")
@pytest.mark.parametrize("left", [2, 99, 100, 4_096, 10_000])
async def test_a_file_that_was_cut_off_is_refused_and_left_as_it_is(tmp_path: Path, left: int) -> None:
    path = tmp_path / "channel.db"
    async with World(tmp_path).process() as channel:
        await channel.join(claude("ann"), "boss")
    os.truncate(path, left)
    before = path.read_bytes()

    with pytest.raises(StoreBroken, match=r"can't be used as a channel: .*The file was left as it is. Move it away"):
        async with open_database(path, durable=False):
            pass
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
