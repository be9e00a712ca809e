"""What the processes of a world left behind: other processes, and files."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil

from channel.wakeups import bells_folder
from fakes.faults import set_faults
from tests.another_session import LOOK_S
from tests.crash.cases import daemon, last_server, last_streamer, serve_thread, server_dies, streamer_dies
from tests.crash.world import CLAUDE_ROLE, CODEX_ROLE, World
from waiters.processes import command_line, environment

SUFFIXES = {"", "-wal", "-shm", "-checkpoint", "-bells"}
"""Of the files that belong to a channel for good."""


def processes_of(root: Path) -> list[str]:
    """The command lines of all processes that name `root`, in their arguments or in their environment."""
    return [f"{pid}: {' '.join(command_line(pid) or ())[:200]}" for pid in psutil.pids() if _names(pid, root)]


def _names(pid: int, root: Path) -> bool:
    if pid == os.getpid():
        return False
    words = [*(command_line(pid) or ()), *(environment(pid) or {}).values()]
    return any(str(root) in word for word in words)


async def until_no_process_is_left(world: World) -> None:
    """Return once every process of the world has ended; an orphan never does."""
    while processes_of(world.root):  # noqa: ASYNC110 - they are nobody's children
        await anyio.sleep(SCAN_S)


def left_files(world: World) -> Iterator[str]:
    """Files beside the channel that nobody needs any more; no process of the world lives."""
    name = world.database.name
    for path in world.database.parent.iterdir():
        if path.name.removeprefix(name) not in SUFFIXES:
            yield f"{path.name} was left behind"
    bells = sorted(path.name for path in bells_folder(world.database).glob("*"))
    if len(bells) > 1:  # one that the last process had no time to remove is the next one's to remove
        yield f"bells were left behind: {', '.join(bells)}"


SCAN_S = 0.2
"""Between two looks at all processes of the machine: one takes some hundredths of a second."""

KINDS = {
    "streamer": "flush_written::die",
    "server": "request_answered:thread/queue/add:die",
    "app-server child": "after_effect:thread/queue/add:die",
    "daemon": "after_effect:thread/queue/add:die",
}
"""How each kind of process is killed in the middle of its work; the last two by the faults of the fake."""


async def kill_each_kind(world: World, times: int) -> dict[str, int]:
    """Kill each kind of process so often in one world; how often each was. Then one of ours ends in order."""
    killed = dict.fromkeys(KINDS, 0)
    for _ in range(times):
        await world.send("to be read", CLAUDE_ROLE)
        killed["streamer"] += await streamer_dies(world, KINDS["streamer"])
        await world.send("to be added", CODEX_ROLE)
        killed["server"] += await server_dies(world, KINDS["server"])
    killed["app-server child"] = await _kill_app_servers(world, times)
    for _ in range(times):
        async with daemon(world):
            killed["daemon"] += await _kill_app_servers(world, 1)
    await last_streamer(world)
    await last_server(world)
    return killed


async def _kill_app_servers(world: World, times: int) -> int:
    """All under one server, whose open files stay as many as they were."""
    killed = 0
    async with world.server() as server:
        await world.send("before", CODEX_ROLE)
        await serve_thread(world)
        open_files = psutil.Process(server.identity.pid).num_fds()
        for _ in range(times):
            set_faults(world.home, KINDS["daemon"])
            await world.send("to be added", CODEX_ROLE)
            await serve_thread(world)
            killed += bool(world.home.passages())
            set_faults(world.home, "")
            await world.send("a success, so that the rests do not grow", CODEX_ROLE)
            await serve_thread(world)
        await until_no_more_than(server.identity.pid, open_files)
    return killed


async def until_no_more_than(pid: int, open_files: int) -> None:
    """Return once a process has so few files open, or fewer."""
    while psutil.Process(pid).num_fds() > open_files:  # noqa: ASYNC110 - it closes them when it gets to it
        await anyio.sleep(LOOK_S)
