"""Which process has a Codex thread loaded, and of what kind it is.

Codex keeps one writer a thread by an flock on a file of its CODEX_HOME, held from the thread's start or
resume until it is unloaded; the file may outlive a killed owner, the lock can't (measured with 0.171.0).
Linux tells every lock's holder in /proc/locks; elsewhere the owner is the process that was seen at `join`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from waiters import processes

_WRITER_LOCKS = "thread-writer-locks"
_LOCKS = Path("/proc/locks")

_RUNS_ONCE = frozenset({"exec", "e", "review"})
"""Commands that run a turn and quit: at its end such a run takes a queued message and asks no model."""

# fmt: off
_OPTIONS_WITH_VALUE = frozenset({
    "-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-i", "--image", "-m", "--model",
    "--local-provider", "-p", "--profile", "-s", "--sandbox", "-C", "--cd", "--add-dir", "-a", "--ask-for-approval",
})
# fmt: on
"""Of `codex` itself, before the command (0.171.0): the word after one is no command."""


@dataclass(frozen=True)
class Owner:
    """The process that has a thread loaded."""

    pid: int
    command_line: tuple[str, ...]

    @property
    def is_daemon(self) -> bool:
        """It is the shared app-server, which its control socket reaches."""
        return "app-server" in self.command_line and "--listen" in self.command_line

    @property
    def runs_once(self) -> bool:
        """It is `codex exec` or its like."""
        return command_of(self.command_line) in _RUNS_ONCE

    def executable(self) -> str | None:
        """What to start for a child of the same version; None where that is not known.

        What stands in for Codex may be a script: its interpreter is not what to start.
        """
        path = processes.executable_path(self.pid)
        return None if path is None or processes.is_launcher(Path(path).name) else processes.executable(self.pid)


def owner_from(pid: int) -> Owner:
    return Owner(pid, tuple(processes.command_line(pid) or ()))


def writer_of(home: Path, thread_id: str) -> int | None:
    """The pid that has the thread loaded; None where none has, or this system does not tell."""
    path = home / _WRITER_LOCKS / f"{thread_id}.lock"
    try:
        inode = str(path.stat().st_ino)
        locks = _LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in locks:
        words = line.split()  # `12: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF`; a waiter has `->`
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
            pid = int(words[4])
            if _has_open(pid, path):  # the device is not compared: some file systems show another one here
                return pid
    return None


def command_of(command_line: Sequence[str]) -> str:
    """The first word of a codex command line that is neither an option nor its value: a command, or a prompt."""
    words = iter(command_line[1:])
    for word in words:
        if not word.startswith("-"):
            return word
        if word in _OPTIONS_WITH_VALUE:
            next(words, None)
    return ""


def _has_open(pid: int, path: Path) -> bool:
    wanted = path.resolve()
    try:
        return any(descriptor.readlink() == wanted for descriptor in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
