"""A person's command in a terminal, on a file with a conversation in it."""

import os
from collections.abc import Mapping

import anyio

from tests.integration.stuck_deliveries import COMMAND_LINE, Stuck
from tests.real.terminal import terminal

SOON_S = 60


def command(stuck: Stuck, *arguments: str) -> list[str]:
    return [*COMMAND_LINE, "--db", str(stuck.database), *arguments]


def environment(stuck: Stuck, **more: str) -> Mapping[str, str]:
    return {"HOME": str(stuck.database.parent.parent), "PATH": os.defpath, "TERM": "xterm", **more}


async def on_terminal(stuck: Stuck, *arguments: str, **more: str) -> tuple[int, str]:
    """The exit status of a command in a terminal, and what that showed, as it came."""
    with anyio.fail_after(SOON_S):
        async with terminal(
            command(stuck, *arguments), env=environment(stuck, **more), cwd=stuck.database.parent
        ) as run:
            status = await run.process.wait()
            await run.wait_until_read()
            return status, run.raw_output()
