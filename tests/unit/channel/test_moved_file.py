"""The file's place is what all processes share: one that was moved from there under a process takes nothing more."""

from pathlib import Path

import pytest

from channel.clock import SystemIds
from channel.database import COMMITS_BETWEEN_CHECKPOINT_LOOKS, WAL_BYTES_BEFORE_CHECKPOINT, open_database
from channel.errors import StoreMoved
from tests.unit.world import Channel, World, claude, codex


@pytest.mark.fault("F43")
@pytest.mark.parametrize("moved", ["alone", "for another", "its folder"])
async def test_a_file_that_was_moved_away_takes_no_message_that_nobody_would_read(tmp_path: Path, moved: str) -> None:
    world = World(tmp_path / "channel")
    async with world.process() as channel:
        await channel.join(claude("ann"), "boss")
        await channel.join(codex("thread"), "worker")
        lease = await channel.leases.take("thread", "p", "")
        if moved == "its folder":
            world.path.parent.rename(tmp_path / "old")
        else:
            world.path.rename(tmp_path / "old.db")
        if moved == "for another":
            async with world.process():
                pass
        with pytest.raises(StoreMoved, match=r"Nothing was stored\. Move it back, or join again"):
            await channel.send("ann", "worker")
        with pytest.raises(StoreMoved):
            await channel.leases.renew("p", [lease])
        with pytest.raises(StoreMoved):
            await channel.states()


async def test_a_file_that_was_moved_back_is_used_again(world: World, channel: Channel) -> None:
    await channel.join(claude("ann"), "boss")
    await channel.join(codex("thread"), "worker")
    away = world.path.rename(world.path.with_name("away"))
    assert channel.database.is_moved()
    away.rename(world.path)
    assert (await channel.send("ann", "worker")).message_id == 1


async def test_the_log_of_a_file_behind_a_link_is_copied_into_it_too(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    file = tmp_path / "elsewhere" / "file.db"
    async with open_database(file, durable=False):
        link.symlink_to(file)
    log = file.with_name("file.db-wal")
    async with open_database(link, durable=False) as database:
        text = SystemIds().new_id() * (WAL_BYTES_BEFORE_CHECKPOINT // COMMITS_BETWEEN_CHECKPOINT_LOOKS // 8)
        for _ in range(4 * COMMITS_BETWEEN_CHECKPOINT_LOOKS):
            async with database.transaction() as transaction:
                await transaction.run("CREATE TABLE IF NOT EXISTS junk (text TEXT)")
                await transaction.run("INSERT INTO junk VALUES (?)", (text,))
        assert log.stat().st_size < 4 * WAL_BYTES_BEFORE_CHECKPOINT
    assert not link.with_name("link.db-checkpoint").exists()
