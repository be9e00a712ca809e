"""A file is replaced whole or not at all, and stays what it was: its mode, its owner, a link."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_adapters.installation.client import CantChange
from harness_adapters.installation.file_change import FileChange, atomic_replace, backup_of

OTHER_USER = 65_534


def test_mode_and_link_are_kept_and_the_backup_is_as_closed_as_the_file(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "config").write_bytes(b"before")
    (dotfiles / "config").chmod(0o640)
    link = tmp_path / "config"
    link.symlink_to("dotfiles/config")
    said = FileChange(link, b"before", b"after", keep_before=True).apply()
    assert link.readlink() == Path("dotfiles/config")
    assert (dotfiles / "config").read_bytes() == b"after"
    assert (dotfiles / "config").stat().st_mode & 0o7777 == 0o640
    assert backup_of(link).read_bytes() == b"before"
    assert backup_of(link).stat().st_mode & 0o7777 == 0o640
    assert str(backup_of(link)) in said
    assert sorted(path.name for path in dotfiles.iterdir()) == ["config"]


def test_a_new_file_is_for_its_owner_alone_and_its_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "config"
    before = os.umask(0)
    try:
        FileChange(path, None, b"new").apply()
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o7777 == 0o600
    assert [folder.stat().st_mode & 0o7777 for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_what_was_made_behind_a_link_is_removed_there_and_the_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "config", tmp_path / "config"
    link.symlink_to(target)
    FileChange(link, None, b"ours").apply()
    assert target.read_bytes() == b"ours"
    FileChange(link, b"ours", None).apply()
    assert link.readlink() == target
    assert not target.exists()


def test_the_owner_is_kept(tmp_path: Path) -> None:
    user, group = (OTHER_USER, OTHER_USER) if os.geteuid() == 0 else (os.geteuid(), os.getgroups()[-1])
    path = tmp_path / "config"
    path.write_bytes(b"before")
    os.chown(path, user, group)
    atomic_replace(path, b"after")
    assert (path.stat().st_uid, path.stat().st_gid) == (user, group)


@contextmanager
def folder_of_an_ordinary_user() -> Iterator[Path]:
    """As that user, while the body runs: root may write everything."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            yield Path(folder)
            return
        os.chown(folder, OTHER_USER, OTHER_USER)
        os.setresuid(OTHER_USER, OTHER_USER, 0)
        try:
            yield Path(folder)
        finally:
            os.setresuid(0, 0, 0)


def test_a_read_only_file_is_left_alone() -> None:
    with folder_of_an_ordinary_user() as folder:
        path = folder / "config"
        path.write_bytes(b"before")
        path.chmod(0o400)
        with pytest.raises(CantChange, match="read-only"):
            FileChange(path, b"before", b"after").apply()
        assert path.read_bytes() == b"before"


def test_what_another_program_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"newer")
    with pytest.raises(CantChange, match="changed by another program"):
        FileChange(path, b"before", b"after", keep_before=True).apply()
    assert path.read_bytes() == b"newer"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cant_be_made_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CantChange) as refused:
        FileChange(tmp_path / "file" / "config", None, b"new").apply()
    assert "can't be written" in refused.value.reason
    assert "writable" in refused.value.by_hand


def test_the_difference_says_where_a_file_comes_from_nothing_or_ends_without_a_newline(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert FileChange(path, None, b"a\n").diff() == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+a\n"
    assert "-a\n\\ No newline at end of file\n+b\n" in FileChange(path, b"a", b"b\n").diff()
