"""The channel's file and folder: whose they are, who else may look, whether this machine can keep them."""

import glob
import os
import pwd
import shlex
import sqlite3
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

from channel.errors import UnsafePlace
from channel.mounts import MountTable, mount_of
from channel.place import refuse_shared
from channel.wakeups import bells_folder
from harness_adapters.doctor.finding import Finding, failed, passed, warned
from harness_adapters.doctor.surroundings import Surroundings

SQLITE_WITHOUT_RESET_FAULT = (3, 51, 3)
"""Below, several connections that write and checkpoint at the same moment can corrupt a log
(https://sqlite.org/wal.html#walresetbug)."""


async def file_and_folder(around: Surroundings) -> AsyncIterator[Finding]:
    """Looked at before anything opens the file: whoever does takes the rights of others away."""
    folder = around.database.parent
    yield file_system(around.database, around.mounts)
    if not folder.exists():
        yield passed(f"{folder} is not there yet: the first `join` makes it, for this account only")
    else:
        for finding in (*folder_rights(folder), writable(folder), *file_rights(around.database)):
            yield finding
    yield sqlite()


def file_system(database: Path, mounts: MountTable) -> Finding:
    try:
        refuse_shared(database, mounts)
    except UnsafePlace as error:
        return failed(
            str(error),
            "Name a file on a disk of this machine: `agent-channel --db FILE install`, and --db for your commands.",
        )
    mount = mount_of(database.resolve(), mounts())
    if mount is None:
        return warned(f"the file system of {database} can't be told", "Make sure that it is of this machine.")
    return passed(f"{mount.point}, which {database} is on, is a file system of this machine ({mount.kind})")


def folder_rights(folder: Path) -> Iterator[Finding]:
    found = folder.stat()
    if found.st_uid != os.geteuid():
        yield _foreign(folder, found)
    elif found.st_mode & 0o022:
        yield failed(
            f"{folder} has mode {_mode(found)}: others may put a file there", f"chmod go-w {shlex.quote(str(folder))}"
        )
    else:
        yield passed(f"{folder} is this account's, and only this account may write there (mode {_mode(found)})")


def file_rights(database: Path) -> Iterator[Finding]:
    """The file, and what lies beside it under its name: log, log's index, copies, bells."""
    names = f"{glob.escape(database.name)}*"
    files = sorted(path for path in database.parent.glob(names) if path != bells_folder(database))
    if not files:
        yield passed(f"{database} is not there yet: the first `join` makes it, with mode 0600")
        return
    is_sound = True
    for path in files:
        with suppress(FileNotFoundError):  # the log goes with the last process that closes the file
            found = path.stat()
            if found.st_uid != os.geteuid():
                is_sound = False
                yield _foreign(path, found)
            elif found.st_mode & 0o077:
                is_sound = False
                yield failed(
                    f"{path} has mode {_mode(found)}: others can read the messages",
                    f"chmod 600 {shlex.quote(str(path))}",
                )
    if is_sound:
        yield passed(f"{database}, and what lies beside it, is this account's, and no other account may read it")


def writable(folder: Path) -> Finding:
    """By making a file there, which is gone at once."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return failed(f"no file can be made in {folder}: {error.strerror}", "Make it writable, or choose another file.")
    return passed(f"a file can be made in {folder}")


def sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    number, needed = ".".join(map(str, version)), ".".join(map(str, SQLITE_WITHOUT_RESET_FAULT))
    if version < SQLITE_WITHOUT_RESET_FAULT:
        return warned(
            f"this Python's SQLite {number} has a rare fault when several connections write and copy the log at once; "
            "agent-channel lets one process at a time copy it, which keeps away from it",
            f"Nothing now; a Python with SQLite {needed} or later is without it.",
        )
    return passed(f"this Python's SQLite {number} is without the fault of versions below {needed}")


def _foreign(path: Path, found: os.stat_result) -> Finding:
    name = str(found.st_uid)
    with suppress(KeyError):
        name = pwd.getpwuid(found.st_uid).pw_name
    return failed(
        f"{path} belongs to another user ({name}), so it is not used",
        "Move it away, or name another file with --db.",
    )


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"
