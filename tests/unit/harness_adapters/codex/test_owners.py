"""Which process has a thread loaded, and what its command line says of it."""

import fcntl
import os
import sys
from pathlib import Path

import pytest

from harness_adapters.codex.owners import Owner, command_of, owner_from, writer_of

THREAD = "01a22c1e-42d9-7ab1-ac8d-cd31aca2b89b"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "thread-writer-locks" / f"{THREAD}.lock"
    path.parent.mkdir()
    path.touch()
    return path


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("codex", ""),
        ("codex --no-daemon", ""),
        ("codex exec hello", "exec"),
        ("codex -m exec", ""),
        ("codex --model exec e hello", "e"),
        ("codex --model=gpt exec", "exec"),
        ("codex --search resume exec", "resume"),
    ],
)
def test_the_command_is_the_first_word_that_is_no_option_and_no_value_of_one(line: str, command: str) -> None:
    assert command_of(line.split()) == command


@pytest.mark.parametrize(
    ("line", "runs_once", "is_daemon"),
    [
        ("codex exec hello", True, False),
        ("codex review", True, False),
        ("codex resume 01a2", False, False),
        ("codex app-server", False, False),
        ("codex app-server --listen unix:// --managed-daemon", False, True),
    ],
)
def test_an_owner_is_told_by_its_command_line(line: str, runs_once: bool, is_daemon: bool) -> None:
    owner = Owner(1, tuple(line.split()))
    assert (owner.runs_once, owner.is_daemon) == (runs_once, is_daemon)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_the_writer_is_who_holds_the_lock_and_not_who_left_the_file(lock: Path, tmp_path: Path) -> None:
    assert writer_of(tmp_path, THREAD) is None
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert writer_of(tmp_path, THREAD) == os.getpid()
    assert writer_of(tmp_path, THREAD) is None


def test_a_thread_that_was_never_loaded_has_no_writer(tmp_path: Path) -> None:
    assert writer_of(tmp_path, THREAD) is None


def test_the_interpreter_of_a_stand_in_is_not_what_to_start() -> None:
    assert owner_from(os.getpid()).executable() is None
