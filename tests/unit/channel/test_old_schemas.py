"""Files that earlier versions wrote, kept as SQL in tests/data/schemas: upgraded, with a copy beside them, whole."""

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from channel.database import open_database
from channel.delivery_states import Policy, State
from channel.errors import StoreFull
from channel.migrations import load_migrations
from fakes.receiver import FakeReceiver
from tests.schema_file import THREAD
from tests.small_disk import needs_root, small_disk
from tests.unit.waiters.rig import supervisor, until, written
from tests.unit.world import Channel, World

SCHEMAS = Path(__file__).parents[2] / "data" / "schemas"
NEWEST = load_migrations()[-1].version
OLDER = range(1, NEWEST)

LOOKS = 20
"""Of so many none is the last."""

Rows = dict[str, list[dict[str, object]]]


def make_file(path: Path, version: int) -> None:
    """A file as the version that had this schema left it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS / f"schema-{version}.sql").read_text(encoding="utf-8"))
        connection.execute("PRAGMA journal_mode=WAL")
    path.chmod(0o600)


def rows_of(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2")] for name in names
        }


def schema_of(path: Path) -> tuple[int, set[tuple[str, str, str]]]:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return version, set(connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master"))


def without_what_is_new(rows: Rows, old: Rows) -> Rows:
    """Of each row only the columns that the old one has."""
    return {
        table: [{column: row[column] for column in before} for row, before in zip(rows[table], old[table], strict=True)]
        for table in old
    }


def test_every_schema_that_there_was_is_kept_as_a_file() -> None:
    assert {file.name for file in SCHEMAS.glob("*.sql")} == {
        f"schema-{version}.sql" for version in range(1, NEWEST + 1)
    }


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_a_kept_file_has_every_table_filled_and_a_delivery_in_every_state(tmp_path: Path, version: int) -> None:
    make_file(tmp_path / "channel.db", version)
    rows = rows_of(tmp_path / "channel.db")
    assert schema_of(tmp_path / "channel.db")[0] == version
    assert [table for table in rows if not rows[table]] == []
    assert {row["state"] for row in rows["deliveries"]} == {state.value for state in State}
    assert {row["policy"] for row in rows["deliveries"]} == {None, *(policy.value for policy in Policy)}


@pytest.mark.fault("F53")
@pytest.mark.parametrize("version", OLDER)
async def test_an_older_file_is_upgraded_with_all_it_holds_and_a_private_copy_lies_beside_it(
    tmp_path: Path, version: int
) -> None:
    path, new = tmp_path / "old" / "channel.db", tmp_path / "new" / "channel.db"
    make_file(path, version)
    before, old_schema = rows_of(path), schema_of(path)

    async with open_database(path, durable=True), open_database(new, durable=True):
        pass

    copy = path.with_name(f"channel.db.schema-{version}")
    assert schema_of(path) == schema_of(new), "the same as a file that was never old"
    assert without_what_is_new(rows_of(path), before) == before
    assert (rows_of(copy), schema_of(copy)) == (before, old_schema)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert {file.name for file in path.parent.iterdir()} <= {path.name, copy.name}


@pytest.mark.parametrize("version", OLDER)
async def test_of_many_that_upgrade_at_once_one_does_it_and_its_copy_is_whole(tmp_path: Path, version: int) -> None:
    path = tmp_path / "channel.db"
    make_file(path, version)
    before = rows_of(path)

    async def open_it() -> None:
        async with open_database(path, durable=False):
            pass

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(open_it)
    assert rows_of(path.with_name(f"channel.db.schema-{version}")) == before


@pytest.mark.parametrize("version", OLDER)
async def test_a_copy_that_a_killed_upgrade_left_half_written_is_made_anew(tmp_path: Path, version: int) -> None:
    path = tmp_path / "channel.db"
    make_file(path, version)
    before = rows_of(path)
    copy = path.with_name(f"channel.db.schema-{version}")
    half = copy.with_name(f"{copy.name}.unfinished")
    half.write_bytes(b"SQLite format 3\0 and no more")

    async with open_database(path, durable=False):
        pass
    assert rows_of(copy) == before
    assert not half.exists()


@pytest.mark.parametrize("version", OLDER)
async def test_each_step_of_an_upgrade_is_told_and_one_that_is_stopped_is_undone_but_for_the_packing(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "channel.db"
    make_file(path, version)
    before = rows_of(path), schema_of(path)
    told: list[str] = []
    async with open_database(shutil.copy(path, tmp_path / "other.db"), durable=False, on_upgrade=told.append):
        pass
    assert len(told) == 4

    for step in told:
        assert (rows_of(path), schema_of(path)) == before
        await stop_at(step, path)
        assert list(tmp_path.glob("*.unfinished")) == []
    assert schema_of(path)[0] == NEWEST


async def stop_at(step: str, path: Path) -> None:
    """Open the file, and cancel that when it is told `step`."""
    with anyio.CancelScope() as scope:
        async with open_database(path, durable=False, on_upgrade=lambda told: scope.cancel() if told == step else None):
            pass
    assert scope.cancelled_caught


@needs_root
@pytest.mark.fault("F43")
async def test_an_older_file_that_there_is_no_room_to_copy_is_left_as_it_is(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.folder / "channel.db"
        make_file(path, 1)
        before = rows_of(path), schema_of(path)
        disk.fill()
        with pytest.raises(StoreFull, match="free some space"):
            async with open_database(path, durable=False):
                pass
        disk.free()
        assert (rows_of(path), schema_of(path)) == before
        assert list(disk.folder.glob("*.schema-*")) == []
        async with open_database(path, durable=False):
            pass
        assert schema_of(path)[0] == NEWEST


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
async def test_what_an_old_version_gave_a_thread_without_a_word_is_looked_for_and_never_added(
    tmp_path: Path, version: int
) -> None:
    """Its first message was handed over and nothing more is known; two later ones wait and are delivered."""
    make_file(tmp_path / "channel.db", version)
    world = World(tmp_path)
    world.dead.add("p1")
    queue = FakeReceiver(Policy.QUEUE)
    async with world.process() as channel:
        waiting = await channel.pending_ids(THREAD)
        async with supervisor(channel, "p2") as waiters:
            waiters.serve(THREAD, queue)

            async def looked_often() -> bool:
                channel.clock.advance(10)
                return sum(step.startswith("look 1") for step in queue.steps.items) > LOOKS

            await until(looked_often)
        state = await state_of(channel, 1)
    assert state == "uncertain"
    assert written(queue) == waiting


async def state_of(channel: Channel, message_id: int) -> str:
    row = await channel.database.read_one("SELECT state FROM deliveries WHERE message_id = ?", (message_id,))
    assert row is not None
    return str(row["state"])
