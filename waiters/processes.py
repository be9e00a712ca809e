"""Processes of this machine: which one, who started it, does it still live.

A pid alone is given again to strangers, so an identity is boot, PID namespace, pid and start time.
Linux's /proc is read directly, since importing psutil takes longer than the streamer may take to
start; elsewhere psutil tells the same. This module knows no harness.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import anyio

from channel.clock import Clock

_ANCESTORS_MAX = 256
"""Ends a walk whose parents changed under it; no real chain comes near."""

_LAUNCHER = re.compile(r"uvx?|pipx|python[\d.]*|env|sudo|nice|timeout|busybox|(ba|z|da|fi|k|c|tc)?sh", re.ASCII)
"""Programs that start a server or a streamer for somebody else."""

_SYSCTL_TIMEOUT_S = 5

_ENDED_LOOK_S = 5.0
"""Between two looks at a process whose end this system does not tell."""

_STAT_BYTES_MAX = 4096
"""52 numbers and a short name."""

_IDENTITY = re.compile(r"([0-9]+)\.([0-9]+)\.(\w+)\.([\w-]+)", re.ASCII)


@dataclass(frozen=True)
class ProcessIdentity:
    """One process for ever. `start` counts in ticks since boot on Linux, in µs since 1970 elsewhere."""

    boot_id: str
    pid_namespace: str
    pid: int
    start: int

    def to_text(self) -> str:
        """One word of letters, digits, `.`, `-` and `_`: a command line needs no quotes around it."""
        return f"{self.pid}.{self.start}.{self.pid_namespace}.{self.boot_id}"

    @classmethod
    def from_text(cls, text: str) -> "ProcessIdentity":
        """
        Raises:
            ValueError: `to_text` did not write this.
        """
        match = _IDENTITY.fullmatch(text)
        if match is None:
            raise ValueError(f"not a process identity: {text!r}")
        return cls(boot_id=match[4], pid_namespace=match[3], pid=int(match[1]), start=int(match[2]))


class _Stat(NamedTuple):
    name: str
    ended: bool
    """A zombie: only its exit code is still there."""
    parent: int
    start: int


@cache
def own_identity() -> ProcessIdentity:
    """This very process, which does not fork."""
    identity = identity_of(os.getpid())
    if identity is None:
        raise RuntimeError("this process finds no record of itself: is /proc mounted?")
    return identity


def identity_of(pid: int) -> ProcessIdentity | None:
    """The process that has `pid` now, None when none lives under it."""
    stat = _stat(pid)
    if stat is None or stat.ended:
        return None
    return ProcessIdentity(boot_id(), pid_namespace(), pid, stat.start)


def is_alive(identity: ProcessIdentity) -> bool | None:
    """Whether that process still runs.

    None where this process can't know: another PID namespace, or the system does not tell (no descriptor is left, or
    others' processes are hidden).
    """
    if identity.boot_id != boot_id():
        return False
    if identity.pid_namespace != pid_namespace():
        return None
    try:
        return identity_of(identity.pid) == identity
    except OSError:
        return None


async def wait_ended(identity: ProcessIdentity, clock: Clock) -> None:
    """Return when that process has ended. On Linux this costs nothing until then, and takes no time."""
    descriptor = _descriptor_of(identity.pid)
    if descriptor is None:
        while is_alive(identity) is not False:
            await clock.sleep(_ENDED_LOOK_S)
        return
    try:
        if is_alive(identity) is not False:  # else its pid may be another's by now
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def parent_of(pid: int) -> int | None:
    """The parent's pid; None when `pid` is gone or its parent can't be seen from here."""
    if pid == os.getpid():
        return os.getppid() or None
    stat = _stat(pid)
    return stat.parent or None if stat is not None else None


def ancestors(pid: int) -> Iterator[int]:
    """The pids above `pid`, the nearest first."""
    for _ in range(_ANCESTORS_MAX):
        parent = parent_of(pid)
        if parent is None:
            return
        yield parent
        pid = parent


def name_of(pid: int) -> str | None:
    """The process's short name (Linux keeps 15 bytes of it), None when it is gone."""
    stat = _stat(pid)
    return None if stat is None else stat.name


def command_line(pid: int) -> list[str] | None:
    """Its arguments, the program's name first; None when it is gone or may not be looked at."""
    if sys.platform != "linux":
        return _command_line_from_psutil(pid)
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    return os.fsdecode(line).split("\0")[:-1]


def environment(pid: int) -> dict[str, str] | None:
    """The environment that `pid` was started with; None when it is gone or may not be looked at."""
    import psutil

    try:
        return psutil.Process(pid).environ()
    except psutil.Error:
        return None


def executable(pid: int) -> str | None:
    """What to run for the very program that `pid` runs; None when it is gone or may not be looked at.

    On Linux the link in /proc, which still leads to that program after an upgrade replaced its file.
    """
    import psutil

    try:
        path = psutil.Process(pid).exe()
    except psutil.Error:
        return None
    return f"/proc/{pid}/exe" if sys.platform == "linux" else path


def executable_path(pid: int) -> str | None:
    """The file of the program that `pid` runs, for use after it has ended; None as for `executable`."""
    import psutil

    try:
        return psutil.Process(pid).exe() or None
    except psutil.Error:
        return None


def nearest_program_above(pid: int) -> int | None:
    """The nearest process above `pid` that is no launcher; None where there is none."""
    return next((ancestor for ancestor in ancestors(pid) if not is_launcher(name_of(ancestor) or "")), None)


def is_launcher(name: str) -> bool:
    """Whether a program of this name starts others for somebody else."""
    return _LAUNCHER.fullmatch(name) is not None


@cache
def boot_id() -> str:
    """Another one after each start of the machine."""
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SYSCTL_TIMEOUT_S).stdout.strip()


@cache
def pid_namespace() -> str:
    """Where this process's pids mean something; `0` where there is only one such place."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def _descriptor_of(pid: int) -> int | None:
    """A pidfd, readable once the process has ended; None where there is none to have."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # it has ended, or a sandbox or a kernel before 5.3 knows no pidfd
        return None


def _stat(pid: int) -> _Stat | None:
    return _stat_from_proc(pid) if sys.platform == "linux" else _stat_from_psutil(pid)


def _stat_from_proc(pid: int) -> _Stat | None:
    """See proc_pid_stat(5). The name stands in brackets and may hold brackets and blanks itself."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # a third of a Path's time
        try:
            stat = os.read(descriptor, _STAT_BYTES_MAX)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, ProcessLookupError):
        return None
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    state, parent, start = fields[0], fields[1], fields[19]
    return _Stat(os.fsdecode(before.partition(b"(")[2]), state in b"ZXx", int(parent), int(start))


def _stat_from_psutil(pid: int) -> _Stat | None:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            return _Stat(process.name(), ended, process.ppid(), int(process.create_time() * 1_000_000))
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from error


def _command_line_from_psutil(pid: int) -> list[str] | None:
    import psutil

    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return None
