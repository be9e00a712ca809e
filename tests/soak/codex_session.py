"""One Codex process with one thread, and our server below it: the terminal program alone, or over its daemon."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import anyio
from websockets.asyncio.client import unix_connect
from websockets.exceptions import WebSocketException

from fakes.codex_app_server import CONTROL_SOCKET
from fakes.codex_store import CodexHome
from fakes.codex_thread import AlreadyOwned, ThreadOwner
from harness_adapters.callers import CODEX_CLIENT
from tests.real.codex_client import connected
from tests.soak.sessions import RESTART_S, call_this_process, serving, take_orders

LOOK_S = 0.5
"""Between two looks of an idle owner at its queue; the real one's 10 s would make a soak of waiting."""

STARTS_WITHIN_S = 10.0
STEP_S_MAX = 0.3
"""What a row takes from the queue to its item, and from there to the end of its turn."""


async def own_thread(home: CodexHome, thread: str) -> None:
    """Have the thread loaded, and run what is queued in it."""
    chance = Random(os.getpid())
    while True:
        try:
            with ThreadOwner(home, thread) as owner:
                while True:
                    if owner.take_row() is None:
                        await anyio.sleep(LOOK_S)
                        continue
                    await anyio.sleep(chance.uniform(0, STEP_S_MAX))
                    owner.record_item()
                    await anyio.sleep(chance.uniform(0, STEP_S_MAX))
                    owner.complete()
        except AlreadyOwned:  # a killed owner's lock goes with it, but not at once
            await anyio.sleep(RESTART_S)


async def run_daemon(home: Path, thread: str) -> None:
    """A daemon has the thread loaded. It outlives this process; one that died is started again."""
    socket = home / CONTROL_SOCKET
    command = [sys.executable, "-m", "fakes.codex_app_server", "app-server", "--home", str(home)]
    command += ["--listen", "unix://", "--tick", str(LOOK_S)]
    while True:
        try:
            await _resume(socket, thread)
        except (OSError, WebSocketException):
            await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=None, start_new_session=True
            )
            await _until_listening(socket)
        except Exception as error:  # the thread is still another's, or the daemon died in the middle
            print(f"the thread could not be resumed: {error!r}", file=sys.stderr)
            await anyio.sleep(RESTART_S)


async def _resume(socket: Path, thread: str) -> None:
    """Have the daemon load the thread, and be its client as long as it lives."""
    connection = await unix_connect(str(socket.resolve()), max_size=None, ping_interval=None, compression=None)
    async with connection, connected(connection.send, connection) as client:
        await client.request("thread/resume", threadId=thread)
        await connection.wait_closed()


async def _until_listening(socket: Path) -> None:
    with anyio.move_on_after(STARTS_WITHIN_S):
        while True:
            try:
                async with await anyio.connect_unix(str(socket.resolve())):
                    return
            except OSError:
                await anyio.sleep(RESTART_S)


async def run(home: Path, thread: str, database: Path, over_daemon: bool) -> None:
    async with serving(database, CODEX_CLIENT, {"threadId": thread, "sessionId": thread}) as (server, tasks):
        if over_daemon:
            tasks.start_soon(run_daemon, home, thread)
        else:
            tasks.start_soon(own_thread, CodexHome(home), thread)
        await take_orders(server)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.codex_session")
    parser.add_argument("--codex-home", type=Path, required=True)
    parser.add_argument("--thread", required=True)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--daemon", action="store_true", help="the thread is loaded by a daemon")
    chosen = parser.parse_args()
    call_this_process("codex")
    anyio.run(run, chosen.codex_home, chosen.thread, chosen.db, chosen.daemon)


if __name__ == "__main__":
    main()
