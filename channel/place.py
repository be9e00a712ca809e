"""Where a channel's file may be: in the account's own folder, on a file system of this machine; and private there."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from channel.errors import StoreBroken, StoreFull, StoreReadOnly, UnsafePlace
from channel.mounts import MountTable, mount_of

_SHARED = re.compile(
    r"nfs4?|cifs|smb[23]|smbfs|afpfs|webdav|davfs|ncpfs|coda|afs"
    r"|ceph|lustre|glusterfs|beegfs|gpfs|orangefs|gfs2|ocfs2"
    r"|9p|virtiofs|drvfs|vboxsf|vmhgfs|prl_fs"  # a virtual machine's, of folders of its host
    r"|(?:fuse|macfuse|osxfuse)(?:\.(?!(?:bindfs|cryfs|encfs|fuse-overlayfs|gocryptfs|mergerfs|ntfs-3g|unionfs)$).*)?"
)
"""File systems that another machine can change as well, and those of FUSE that nobody knows to be of this one.
All who have a write-ahead log open must share memory (https://sqlite.org/wal.html), which these can't give."""

_LOG_INDEX_BYTES = 32_768
"""https://sqlite.org/walformat.html; without room for it SQLite speaks of an I/O error, not of a full disk."""

_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def default_database() -> Path:
    """Where the channel is unless --db says otherwise: no variable moves it, since Codex passes none on."""
    return Path.home() / ".agent-channel" / "channel.db"


def make_private(path: Path, mounts: MountTable) -> None:
    """The folder 0700 if it is made here, the file 0600 from its first moment, whatever the umask.

    SQLite gives its -wal and -shm files the mode of the database.
    Raises UnsafePlace, StoreFull, StoreReadOnly, StoreBroken.
    """
    with os_errors(path):
        refuse_shared(path, mounts)
        make_folders(path.parent)
        _refuse_foreign(path.parent, folder=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        _refuse_foreign(path, folder=False)


def make_folders(folder: Path) -> None:
    """This folder and those above it, where they are not there: for their owner alone, whatever the umask.

    Raises OSError.
    """
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        with suppress(FileExistsError):
            missing.mkdir(mode=0o700)


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into the channel's. Raises StoreFull, StoreReadOnly, StoreBroken."""
    try:
        yield
    except OSError as error:
        if error.errno in _READ_ONLY:
            raise StoreReadOnly(str(path)) from error
        if error.errno in _FULL:
            raise StoreFull(str(path)) from error
        raise StoreBroken(str(path), error.strerror or str(error)) from error


def has_no_room(path: Path) -> bool:
    """Whether its disk has not even the room that the index of SQLite's log takes in one step."""
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize < _LOG_INDEX_BYTES


def refuse_shared(path: Path, mounts: MountTable) -> None:
    """Raises UnsafePlace if other machines may change the file system that `path` is on."""
    mount = mount_of(path.resolve(), mounts())
    if mount is not None and _SHARED.fullmatch(mount.kind.lower()):
        raise UnsafePlace(
            str(path),
            f"{mount.point} is a file system that other machines may share ({mount.kind}), and all processes of a "
            "channel must be on one machine: SQLite's write-ahead log lives in memory that they share",
        )


def _refuse_foreign(path: Path, *, folder: bool) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise UnsafePlace(str(path), f"it belongs to another user (uid {found.st_uid})")
    if folder:
        if not stat.S_ISDIR(found.st_mode):
            raise UnsafePlace(str(path), "it is no folder")
        if found.st_mode & 0o022:
            raise UnsafePlace(str(path), "others may write in this folder, so it must be one of your own (chmod go-w)")
        return
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePlace(str(path), "it is no ordinary file")
    if found.st_mode & 0o077:
        path.chmod(0o600)
