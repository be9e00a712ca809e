"""Processes of ours that nobody uses any more: servers and streamers whose harness has ended."""

import os
from collections.abc import Iterator
from contextlib import suppress

from harness_adapters.doctor.finding import Finding, passed, warned
from harness_adapters.installation.client import SERVER_MODULE
from waiters.processes import name_of, nearest_program_above

_REAPERS = frozenset({"systemd", "init", "launchd"})
"""Besides process 1: what the system gives orphans to."""

SHOWN_MAX = 20


def leftover_processes() -> Iterator[Finding]:
    """Each ends with its harness within a second; one that does not hangs."""
    import psutil

    ours = left = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            what = _kind(process.cmdline())
            if what is None or process.uids().effective != os.geteuid():
                continue
            ours += 1
            if not _is_orphan(process.pid):
                continue
            left += 1
            if left <= SHOWN_MAX:
                yield warned(
                    f"{what} {process.pid} is left over: no harness is above it any more",
                    f"kill {process.pid} (messages that it had not given are given by the next one)",
                )
    if not left:
        yield passed(f"no server or streamer is left over ({ours} run)")


def _kind(words: list[str]) -> str | None:
    """What a command line of ours is; None: it is none of a session's."""
    if SERVER_MODULE in words or any(word.endswith("/agent-channel-mcp") for word in words[:2]):
        return "the MCP server"
    is_ours = "harness_adapters.cli" in words or any(word.endswith("/agent-channel") for word in words[:2])
    return "the streamer" if is_ours and "monitor" in words else None


def _is_orphan(pid: int) -> bool:
    above = nearest_program_above(pid)
    return above is None or above == 1 or name_of(above) in _REAPERS
