"""Which file system a path is on, as the system's mount table says."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

_OCTAL = re.compile(r"\\([0-7]{3})")
"""mountinfo writes blanks, newlines and backslashes of a path so."""


class Mount(NamedTuple):
    """One line of the table: where, and the kind of file system (`ext4`, `nfs4`, `fuse.sshfs`)."""

    point: Path
    kind: str


MountTable = Callable[[], Sequence[Mount]]


def system_mounts() -> Sequence[Mount]:
    """The mounts that this process sees, in the order they were made; none where they can't be read."""
    if sys.platform == "linux":
        try:
            return parse_mountinfo(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))
        except OSError:
            return ()
    import psutil

    return [Mount(Path(each.mountpoint), each.fstype) for each in psutil.disk_partitions(all=True)]


def parse_mountinfo(text: str) -> list[Mount]:
    """See proc_pid_mountinfo(5): the mount point is the fifth field, the kind the first after a lone `-`."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if dash and len(fields) > 4:
            mounts.append(Mount(Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4])), after.split(" ")[0]))
    return mounts


def mount_of(path: Path, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without links is on: the deepest, and of two at one point the later."""
    covering = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(covering), key=lambda mount: len(mount.point.parts), default=None)
