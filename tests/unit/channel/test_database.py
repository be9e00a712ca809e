"""The file: private from its first moment, changed in whole transactions, left alone when it is not ours."""

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from channel import database as database_module
from channel.database import COMMITS_BETWEEN_CHECKPOINT_LOOKS, Database, open_database
from channel.errors import SchemaTooNew, StoreBroken, StoreBusy, UnsafePlace
from channel.migrations import Migration, load_migrations, statements
from channel.wakeups import bells_folder, open_bell
from fakes.clock import FakeIds

NEWEST = load_migrations()[-1].version
PUT_ROOM = "INSERT INTO rooms (name, created_at_ms) VALUES (?, 0)"


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent-channel" / "channel.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def put_room(database: Database, name: str) -> None:
    async with database.transaction() as transaction:
        await transaction.run(PUT_ROOM, (name,))


def rooms(path: Path) -> list[str]:
    """As a second connection sees them, now."""
    with closing(sqlite3.connect(path, timeout=0)) as other:
        return [row[0] for row in other.execute("SELECT name FROM rooms ORDER BY room_id")]


@pytest.mark.fault("F41")
@pytest.mark.usefixtures("umask")
async def test_folders_are_0700_and_every_file_is_0600_whatever_the_umask(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chmod(*_: object) -> None:
        raise AssertionError("a mode that has to be mended was wrong for a moment")

    monkeypatch.setattr(Path, "chmod", chmod)
    monkeypatch.setattr(os, "chmod", chmod)
    monkeypatch.setattr(database_module, "WAL_BYTES_BEFORE_CHECKPOINT", 0)
    deep = path.parent / "below" / path.name
    async with open_database(deep, durable=True) as database, open_bell(bells_folder(deep), "p1", FakeIds()) as bell:
        for number in range(COMMITS_BETWEEN_CHECKPOINT_LOOKS):
            await put_room(database, str(number))

        assert mode(path.parent) == mode(deep.parent) == mode(bells_folder(deep)) == 0o700
        assert mode(bell.path) == 0o600
        files = {file.name: mode(file) for file in deep.parent.iterdir() if file.is_file()}
    assert files == dict.fromkeys(["channel.db", "channel.db-wal", "channel.db-shm", "channel.db-checkpoint"], 0o600)


@pytest.mark.fault("F41")
async def test_a_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o644)

    async with open_database(path, durable=False) as database:
        await put_room(database, "hall")
        assert mode(path) == mode(Path(f"{path}-wal")) == 0o600


@pytest.mark.fault("F41")
async def test_a_folder_in_which_others_may_write_is_refused_with_what_to_do(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)

    with pytest.raises(UnsafePlace, match="others may write in this folder"):
        async with open_database(path, durable=False):
            pass
    assert not path.exists()


@pytest.mark.fault("F41")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["folder", "file"])
async def test_what_belongs_to_another_user_is_refused(path: Path, what: str) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    os.chown(path.parent if what == "folder" else path, 65_534, -1)

    with pytest.raises(UnsafePlace, match=r"belongs to another user \(uid 65534\)"):
        async with open_database(path, durable=False):
            pass
    assert path.read_bytes() == b""


async def test_a_place_that_can_not_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UnsafePlace, match="it is no folder"):
        async with open_database(tmp_path / "file" / "channel.db", durable=False):
            pass
    with pytest.raises(StoreBroken, match="can't be used as a channel: Not a directory"):
        async with open_database(tmp_path / "file" / "below" / "channel.db", durable=False):
            pass


async def test_a_fifo_in_the_files_place_is_refused(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path)

    with pytest.raises(UnsafePlace, match="it is no ordinary file"):
        async with open_database(path, durable=False):
            pass


@pytest.mark.fault("F43")
async def test_a_text_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("Dear diary, today I was no database. " * 100, encoding="utf-8")
    before = path.read_bytes()

    with pytest.raises(StoreBroken, match=r"file is not a database.*left as it is"):
        async with open_database(path, durable=False):
            pass
    assert path.read_bytes() == before


@pytest.mark.fault("F43")
async def test_another_programs_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE queued_items (id TEXT)")
        other.commit()
    before = path.read_bytes()

    with pytest.raises(StoreBroken, match="another program's database"):
        async with open_database(path, durable=False):
            pass
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.fault("F43")
async def test_a_newer_schema_is_refused_at_opening_and_named(path: Path) -> None:
    async with open_database(path, durable=False):
        pass
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version=99")

    with pytest.raises(SchemaTooNew, match=r"upgraded: the database has schema 99.*Restart this session"):
        async with open_database(path, durable=False):
            pass


@pytest.mark.fault("F53")
async def test_a_schema_that_became_newer_under_an_open_connection_is_not_written_to(path: Path) -> None:
    async with open_database(path, durable=False) as database:
        await put_room(database, "before")
        with closing(sqlite3.connect(path)) as newer:
            newer.execute("PRAGMA user_version=99")

        with pytest.raises(SchemaTooNew):
            await put_room(database, "after")
    assert rooms(path) == ["before"]


@pytest.mark.fault("F53")
async def test_a_single_statement_writes_nothing_under_a_newer_schema(path: Path) -> None:
    rename = (
        "UPDATE rooms SET name = 'after' WHERE :schema = (SELECT user_version FROM pragma_user_version) RETURNING name"
    )
    async with open_database(path, durable=False) as database:
        await put_room(database, "before")
        with closing(sqlite3.connect(path)) as newer:
            newer.execute("PRAGMA user_version=99")
            with pytest.raises(SchemaTooNew):
                await database.write(rename, {})
            assert newer.execute("SELECT name FROM rooms").fetchall() == [("before",)]
            newer.execute(f"PRAGMA user_version={NEWEST}")
        assert [row["name"] for row in await database.write(rename, {})] == ["after"]
        assert await database.write(rename.replace(" RETURNING", " AND room_id = 99 RETURNING"), {}) == []


@pytest.mark.fault("F39")
async def test_a_database_that_others_hold_locked_is_busy_and_nothing_is_stored(path: Path) -> None:
    async with open_database(path, durable=False) as database:
        await database.read("PRAGMA busy_timeout=1")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match="Nothing was stored; try again"):
                await put_room(database, "hall")
            assert await database.read("SELECT name FROM rooms") == []
        await put_room(database, "later")
    assert rooms(path) == ["later"]


async def test_a_commit_of_another_connection_changes_the_data_version_and_ones_own_does_not(path: Path) -> None:
    async with open_database(path, durable=False) as own, open_database(path, durable=False) as other:
        before = await own.data_version()
        await put_room(own, "own")
        assert await own.data_version() == before

        await put_room(other, "other")
        assert await own.data_version() != before


@pytest.mark.parametrize("_again", range(4))  # it was refused to one of twenty, about one time in ten
async def test_many_may_open_a_new_file_at_once(path: Path, _again: int) -> None:
    async def open_and_write(number: int) -> None:
        async with open_database(path, durable=False) as database:
            await put_room(database, str(number))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(open_and_write, number)
    assert sorted(rooms(path), key=int) == [str(number) for number in range(20)]


@pytest.mark.parametrize("durable", [True, False])
async def test_the_durability_that_was_asked_for_is_set(path: Path, durable: bool) -> None:
    async with open_database(path, durable=durable) as database:
        assert (await database.read("PRAGMA synchronous"))[0][0] == (2 if durable else 1)
        assert (await database.read("PRAGMA journal_mode"))[0][0] == "wal"
        assert (await database.read("PRAGMA wal_autocheckpoint"))[0][0] == 0


async def test_no_thread_is_left_when_a_file_was_refused(path: Path) -> None:
    """An aiosqlite thread that is left hangs the exit of the process."""
    path.parent.mkdir(mode=0o700)
    path.write_text("no database " * 100, encoding="utf-8")
    before = set(threading.enumerate())

    with pytest.raises(StoreBroken):
        async with open_database(path, durable=False):
            pass
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive()


class TestMigrations:
    """With one more step than the product has."""

    NEXT = Migration(NEWEST + 1, "CREATE TABLE extra (a INTEGER) STRICT;")

    @pytest.fixture
    async def older(self, path: Path) -> Path:
        """A file of the newest schema with one room."""
        async with open_database(path, durable=False) as database:
            await put_room(database, "hall")
        return path

    def know(self, monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
        known = (*load_migrations(), *more)
        monkeypatch.setattr(database_module, "load_migrations", lambda: known)

    async def test_an_older_file_is_migrated_with_a_private_copy_beside_it(
        self, older: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.know(monkeypatch, self.NEXT)

        async with open_database(older, durable=False) as database:
            assert await database.read("SELECT * FROM extra") == []
            assert (await database.read("PRAGMA user_version"))[0][0] == NEWEST + 1

        copy = older.with_name(f"channel.db.schema-{NEWEST}")
        assert rooms(older) == rooms(copy) == ["hall"]
        assert mode(copy) == 0o600

    async def test_a_step_that_fails_leaves_the_older_file_as_it_was(
        self, older: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.know(monkeypatch, Migration(NEWEST + 1, "CREATE TABLE extra (a INTEGER);\nCREATE TABLE rooms (a);"))

        with pytest.raises(StoreBroken, match="table rooms already exists"):
            async with open_database(older, durable=False):
                pass
        with closing(sqlite3.connect(older)) as found:
            assert found.execute("PRAGMA user_version").fetchone() == (NEWEST,)
            assert found.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchone() is None

    async def test_several_that_migrate_at_once_do_it_once(self, older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.know(monkeypatch, self.NEXT)

        async def open_it() -> None:
            async with open_database(older, durable=False) as database:
                assert await database.read("SELECT * FROM extra") == []

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(open_it)


async def test_a_new_file_and_one_of_schema_1_can_shrink(path: Path) -> None:
    """What `trim` frees is given back page by page, which a file takes only from its beginning or from a VACUUM."""
    first = path.with_name("first.db")
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(first)) as old:
        for statement in statements(load_migrations()[0].sql):
            old.execute(statement)
        old.execute(PUT_ROOM, ("hall",))
        old.execute("PRAGMA user_version=1")
        old.commit()

    for file in (path, first):
        async with open_database(file, durable=False) as database:
            assert (await database.read("PRAGMA auto_vacuum"))[0][0] == 2
    assert rooms(first) == ["hall"]
