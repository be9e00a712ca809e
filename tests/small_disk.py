"""A disk of the test's own that can be full or read-only: a small tmpfs, which only root can mount.

with small_disk(tmp_path / "disk") as disk:
    ...                 # files in disk.folder
    disk.fill()         # not one byte more
    disk.free()
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BYTES = 2 * 1024 * 1024
PAGE = 4096

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that can be filled")


class SmallDisk:
    """Made by `small_disk`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take every page that is left."""
        with self._ballast.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * PAGE)
            except OSError:
                return

    def free(self) -> None:
        """There is room again."""
        self._ballast.unlink(missing_ok=True)

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mounted on a folder made for it, gone at the end."""
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={BYTES},mode=700", "agent-channel-test", str(folder)], check=True
    )
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
