"""The SQLite file: opened, kept private, and changed only in short transactions.

The only module that imports aiosqlite. It knows no table but the schema's version.

One connection a process, used by one task at a time. A whole transaction is shielded from
cancellation, since aiosqlite leaves a cancelled one open and then nobody else can write (measured
with 0.22.1: 53 of 300 calls cancelled at random did).
"""

import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiosqlite
import anyio

from channel.connection import BEGIN, COMMIT, SCHEMA_VERSION, connection_of, sqlite_errors
from channel.errors import NoStore, SchemaTooNew, StoreBroken, StoreBusy, StoreMoved
from channel.fault_places import Place, passing
from channel.migrations import Migration, load_migrations, statements
from channel.mounts import MountTable, system_mounts
from channel.place import make_private, os_errors

BUSY_TIMEOUT_MS = 5_000
"""How long SQLite itself waits for another writer; our transactions take milliseconds."""

WAL_BYTES_BEFORE_CHECKPOINT = 4 * 1024 * 1024
"""A larger write-ahead log is copied into the database: SQLite's own default is 1,000 pages of 4 KiB."""

COMMITS_BETWEEN_CHECKPOINT_LOOKS = 64
"""How often the log's size is asked for; one stat a transaction would be wasted."""

_SHRINKS = "PRAGMA auto_vacuum=INCREMENTAL"
_BEGIN_MIGRATION = "BEGIN EXCLUSIVE;"
"""The same for SQLite, with a log; but whatever the schema is."""

OnUpgrade = Callable[[str], None]
"""Takes what is done now of an upgrade, in words for a person."""

_WAIT_FOR_OTHERS = f"{_BEGIN_MIGRATION}\nROLLBACK;"

LOG_ATTEMPTS_MAX = 1_000
"""More processes than will ever open a new file at the same moment; each attempt waits until one of them is done."""

Parameters = Sequence[Any] | Mapping[str, Any]
Row = sqlite3.Row


class Transaction:
    """Statements between BEGIN IMMEDIATE and COMMIT; made by `Database.transaction`.

    The first one begins it, in the same hop to aiosqlite's thread; the last one may end it in its own.
    """

    def __init__(self, connection: aiosqlite.Connection, of: str) -> None:
        self._connection = connection
        self._of = of
        self.is_open = False
        self._is_committed = False

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Run a statement, or several in one go, all with the same parameters; the rows of all."""
        assert not self._is_committed, "a statement after the last one"
        begin, self.is_open = "" if self.is_open else f"{BEGIN}\n", True
        return list(await self._connection.execute_fetchall(begin + sql, parameters))

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """As `all`; the first row, or None."""
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def run(self, sql: str, parameters: Parameters = ()) -> None:
        """As `all`, for what gives no rows."""
        await self.all(sql, parameters)

    async def last(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """As `all`, and commit: nothing more can be run in it."""
        passing(Place.UNCOMMITTED, self._of)
        rows = await self.all(f"{sql.rstrip().removesuffix(';')};\n{COMMIT}", parameters)
        self._committed()
        return rows

    async def end(self) -> None:
        """Commit, if there is anything and `last` has not."""
        if self.is_open:
            passing(Place.UNCOMMITTED, self._of)
            await self.run(COMMIT)
            self._committed()

    def _committed(self) -> None:
        self.is_open, self._is_committed = False, True
        passing(Place.COMMITTED, self._of)


class Database:
    """One open channel file. Made by `open_database`."""

    def __init__(self, connection: aiosqlite.Connection, path: Path, schema: int) -> None:
        self.path = path
        self._file = os.path.realpath(path)
        self._inode = _inode(path)
        self._connection = connection
        self._schema = schema
        self._turn = anyio.Lock(fast_acquire=True)
        self._commits = 0

    async def read(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows of a SELECT, or of several, each of which may see more. No read transaction stays open after it.

        Raises StoreBusy, StoreMoved, SchemaTooNew (where it has not what is asked for), StoreBroken.
        """
        rows: list[Row] = []
        async with self._turn:
            with anyio.CancelScope(shield=True), sqlite_errors(self.path):
                rows = await self._run_alone(sql, parameters)
        return rows

    async def read_one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.read(sql, parameters)
        return rows[0] if rows else None

    @asynccontextmanager
    async def transaction(self, of: str = "") -> AsyncIterator[Transaction]:
        """A write transaction: committed by `last` or at the end, rolled back by any exception before that. `of` names
        it for a test.

        Nothing in it may wait for anything but the database: it is shielded from cancellation.
        Raises StoreBusy, SchemaTooNew and StoreMoved (before anything is written), StoreBroken.
        """
        async with self._turn:
            with anyio.CancelScope(shield=True), sqlite_errors(self.path):
                self._refuse_a_moved_file()
                transaction = Transaction(self._connection, of)
                try:
                    yield transaction
                    await transaction.end()
                except BaseException:
                    if transaction.is_open:
                        with suppress(sqlite3.Error):
                            await transaction.run("ROLLBACK")
                    raise
                await self._checkpoint_when_due()

    async def write(self, sql: str, parameters: Mapping[str, Any], of: str = "") -> list[Row]:
        """One statement as a transaction of its own; the rows it returns.

        A quarter of the thread hops of `transaction`. `:schema = (SELECT user_version FROM pragma_user_version)`
        must be among its conditions, and it must return the rows that it wrote.
        Raises StoreBusy, SchemaTooNew and StoreMoved (nothing is written), StoreBroken.
        """
        assert ":schema" in sql
        rows: list[Row] = []
        async with self._turn:
            with anyio.CancelScope(shield=True), sqlite_errors(self.path):
                passing(Place.UNCOMMITTED, of)
                rows = await self._run_alone(sql, {**parameters, "schema": self._schema})
                passing(Place.COMMITTED, of)
                if not rows:
                    await self._refuse_a_newer_schema()
                await self._checkpoint_when_due()
        return rows

    async def checkpoint(self) -> bool:
        """Copy the log into the database now, which shortens the file; whether all of it was copied.

        False while another process makes one or reads. Raises StoreBroken.
        """
        async with self._turn:
            with anyio.CancelScope(shield=True), sqlite_errors(self.path), suppress(BlockingIOError):
                busy, in_log, copied = await self._checkpoint()
                return not busy and in_log == copied
        return False

    async def data_version(self) -> int:
        """A number that changes when another process has committed."""
        rows = await self.read("PRAGMA data_version")
        return int(rows[0][0])

    def is_moved(self) -> bool:
        """Whether its place holds another file now, or none: others would look there."""
        return _inode(self.path) != self._inode

    def _refuse_a_moved_file(self) -> None:
        if self.is_moved():
            raise StoreMoved(str(self.path))

    async def _run_alone(self, sql: str, parameters: Parameters) -> list[Row]:
        """A statement outside of a transaction. A later version may have taken away what it names."""
        self._refuse_a_moved_file()
        try:
            return list(await self._connection.execute_fetchall(sql, parameters))
        except sqlite3.OperationalError:
            await self._refuse_a_newer_schema()
            raise

    async def _refuse_a_newer_schema(self) -> None:
        found = await _schema_version(self._connection)
        if found != self._schema:
            raise SchemaTooNew(found, self._schema)

    async def _checkpoint_when_due(self) -> None:
        """Copy a long log into the database, if no other process is doing so.

        SQLite below 3.51.3 has a rare fault where several connections write and checkpoint at the same
        moment, so automatic checkpoints are off and only the holder of a lock makes one.
        """
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_CHECKPOINT_LOOKS:
            return
        # The caller's transaction is committed: a checkpoint that fails is no error of it, and comes again.
        with suppress(OSError, sqlite3.Error):
            if os.stat(f"{self._file}-wal").st_size >= WAL_BYTES_BEFORE_CHECKPOINT:  # noqa: PTH116
                await self._checkpoint()

    async def _checkpoint(self) -> Row:
        """What SQLite says of it. Raises BlockingIOError while another process makes one."""
        lock = os.open(f"{self._file}-checkpoint", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            [done] = await self._connection.execute_fetchall("PRAGMA wal_checkpoint(PASSIVE)")
            return done
        finally:
            os.close(lock)


@asynccontextmanager
async def open_database(
    path: Path,
    *,
    durable: bool,
    create: bool = True,
    mounts: MountTable = system_mounts,
    on_upgrade: OnUpgrade = lambda _step: None,
) -> AsyncIterator[Database]:
    """Open the channel file, migrated if need be, and made if it is not there and `create` is True.

    `durable`: a commit survives power loss (synchronous=FULL); else it survives any crash of processes.
    `on_upgrade` is told each step of a migration. One that is cancelled is undone, but for the last step, the packing.
    Raises UnsafePlace, StoreBroken, StoreFull, StoreReadOnly, SchemaTooNew, StoreBusy.
    """
    path = path.expanduser().absolute()
    if not create and not path.exists():
        raise NoStore(str(path))
    make_private(path, mounts)
    migrations = load_migrations()
    async with _connect(path, migrations[-1].version) as connection:
        with sqlite_errors(path):
            await _refuse_what_is_not_ours(connection, path, migrations[-1].version)
            await _configure(connection, durable)
            await _migrate(connection, path, migrations, on_upgrade)
        yield Database(connection, path, migrations[-1].version)


@asynccontextmanager
async def _connect(path: Path, schema: int) -> AsyncIterator[aiosqlite.Connection]:
    with sqlite_errors(path), anyio.CancelScope(shield=True):  # its thread would outlive a cancelled one
        connection = await aiosqlite.connect(
            path, isolation_level=None, cached_statements=256, factory=connection_of(schema)
        )
    try:
        connection.row_factory = sqlite3.Row
        await connection.execute_fetchall(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        yield connection
    except BaseException:
        await connection.interrupt()  # nobody waits any more for what its thread may be at
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await connection.close()


def _inode(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to; None: to none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


async def _refuse_what_is_not_ours(connection: aiosqlite.Connection, path: Path, known: int) -> None:
    """Before anything is written. Raises SchemaTooNew, StoreBroken."""
    rows = list(
        await connection.execute_fetchall(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        )
    )
    version, objects = rows[0]
    if version > known:
        raise SchemaTooNew(version, known)
    if version == 0 and objects:
        raise StoreBroken(str(path), "it is another program's database")


async def _configure(connection: aiosqlite.Connection, durable: bool) -> None:
    if not await _schema_version(connection):
        # Before all else: a file that has a header takes it only with a VACUUM.
        await connection.execute_fetchall(_SHRINKS)
    await _keep_a_log(connection)
    for pragma in (
        f"synchronous={'FULL' if durable else 'NORMAL'}",
        "wal_autocheckpoint=0",
        f"journal_size_limit={2 * WAL_BYTES_BEFORE_CHECKPOINT}",
        "foreign_keys=ON",
        "trusted_schema=OFF",
    ):
        await connection.execute_fetchall(f"PRAGMA {pragma}")


async def _keep_a_log(connection: aiosqlite.Connection) -> None:
    """Where others open a new file at the same moment SQLite refuses this at once, whatever the busy timeout is."""
    for _ in range(LOG_ATTEMPTS_MAX):
        try:
            await connection.execute_fetchall("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        await connection.execute_fetchall(_WAIT_FOR_OTHERS)
    raise StoreBusy


async def _migrate(
    connection: aiosqlite.Connection, path: Path, migrations: Sequence[Migration], on_upgrade: OnUpgrade
) -> None:
    newest = migrations[-1].version
    if await _schema_version(connection) == newest:
        return
    on_upgrade("waiting until nobody writes to it")
    await connection.execute_fetchall(_BEGIN_MIGRATION)
    try:
        found = await _schema_version(connection)  # another process may have been first
        is_old = 0 < found < newest
        if is_old:
            on_upgrade("keeping a copy of it")
            await _copy_beside(path, found)
        on_upgrade("bringing it up to date")
        for migration in migrations:
            if migration.version > found:
                for statement in statements(migration.sql):
                    await connection.execute_fetchall(statement)
                await connection.execute_fetchall(f"PRAGMA user_version={migration.version}")
        await connection.execute_fetchall("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            await connection.execute_fetchall("ROLLBACK")
        raise
    if is_old:
        on_upgrade("packing it")
        with suppress(sqlite3.OperationalError):  # others are at it; then `trim` leaves the file its size
            await connection.execute_fetchall(f"{_SHRINKS};\nVACUUM;")


async def _schema_version(connection: aiosqlite.Connection) -> int:
    rows = list(await connection.execute_fetchall(SCHEMA_VERSION))
    return int(rows[0][0])


async def _copy_beside(path: Path, version: int) -> None:
    """Keep the older file as it is while the caller holds off all who write. Whole, or not there at all."""
    copy = path.with_name(f"{path.name}.schema-{version}")
    unfinished = copy.with_name(f"{copy.name}.unfinished")
    with os_errors(path):
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            # VACUUM INTO is refused in a transaction, and takes an empty file.
            async with _connect(path, version) as reader:
                await reader.execute_fetchall("VACUUM INTO ?", (str(unfinished),))
            os.fsync(descriptor)
            unfinished.replace(copy)
        finally:
            os.close(descriptor)
            unfinished.unlink(missing_ok=True)
