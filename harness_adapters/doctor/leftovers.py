"""Processes of ours that nobody uses any more: servers and streamers whose harness has ended."""

import os
from collections.abc import AsyncIterator
from contextlib import suppress

from channel.clock import Clock
from harness_adapters.doctor.finding import Finding, passed, warned
from harness_adapters.installation.client import SERVER_MODULE
from waiters.processes import ProcessIdentity, ancestors, identity_of, is_alive, is_launcher, name_of

_REAPERS = frozenset({"systemd", "init", "launchd"})
"""Besides process 1: what the system gives orphans to."""

GRACE_S = 2.0
"""A server ends 0.1 s after its harness, a streamer 1 s: one that was found may be about to."""

SHOWN_MAX = 20


async def leftover_processes(clock: Clock) -> AsyncIterator[Finding]:
    """Of this account, whichever channel they serve."""
    ours = _ours()
    orphans = {identity: what for identity, what in ours.items() if _is_orphan(identity.pid)}
    if orphans:
        await clock.sleep(GRACE_S)
    left = {identity: what for identity, what in orphans.items() if is_alive(identity)}
    for identity, what in list(left.items())[:SHOWN_MAX]:
        yield warned(
            f"{what}, process {identity.pid}, is left over: its harness has ended",
            f"kill {identity.pid}; what it had not delivered, the next one delivers.",
        )
    if not left:
        yield passed(f"none of our servers and streamers ({len(ours)} run) is left over from a harness that has ended")


def _ours() -> dict[ProcessIdentity, str]:
    import psutil

    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            what = _kind(process.cmdline())
            identity = identity_of(process.pid)
            if what is not None and identity is not None and process.uids().effective == os.geteuid():
                found[identity] = what
    return found


def _kind(words: list[str]) -> str | None:
    """What a command line of ours is; None: it is none of a session's."""
    if SERVER_MODULE in words or any(word.endswith("/agent-channel-mcp") for word in words[:2]):
        return "an MCP server"
    is_ours = "harness_adapters.cli" in words or any(word.endswith("/agent-channel") for word in words[:2])
    return "a streamer" if is_ours and "monitor" in words else None


def _is_orphan(pid: int) -> bool:
    """Above it is only what starts programs for somebody else, as Monitor's shell does. A Python may be a harness."""
    for above in ancestors(pid):
        name = name_of(above) or ""
        if above == 1 or name in _REAPERS:
            return True
        if not is_launcher(name) or name.startswith("python"):
            return False
    return True
