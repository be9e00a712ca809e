"""What a person's command loads before it answers: that is what its start takes, and no clock has to tell it."""

import re
import subprocess
import sys

import anyio
import pytest

from tests.integration.person_terminal import SOON_S, environment
from tests.integration.stuck_deliveries import Stuck

SLOW = {
    "mcp",
    "mcp_types",
    "pydantic",
    "jsonschema",
    "starlette",
    "uvicorn",
    "httpx",
    "websockets",
    "psutil",
    "tomlkit",
    "shtab",
    "tenacity",
    "importlib.metadata",
}
"""Packages that take long to load, each with a command that needs it; `asyncio` and `aiosqlite` are the floor."""

MODULES_OVER_FLOOR_MAX = 120
"""Of the standard library, anyio and ours, beside the floor's: at most 93 on Linux with Python 3.11."""

COMMANDS = {
    "rooms": ["rooms"],
    "who": ["who"],
    "history": ["history", "hall"],
    "send": ["send", "hall", "builder", "text"],
    "invite": ["invite", "hall", "tester"],
    "message": ["message", "1"],
    "deliveries": ["deliveries"],
    "deliveries show": ["deliveries", "show", "2"],
    "deliveries drop": ["deliveries", "drop", "2"],
    "trim": ["trim", "--older-than", "1d"],
    "tail": ["tail", "attic"],
    "help": ["--help"],
}


async def loaded_by(stuck: Stuck, *arguments: str) -> set[str]:
    """The modules that a run of Python imports."""
    with anyio.fail_after(SOON_S):
        run = await anyio.run_process(
            [sys.executable, "-I", "-X", "importtime", *arguments],
            env=environment(stuck),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", run.stderr.decode(), re.MULTILINE))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_a_command_loads_only_what_it_needs(stuck: Stuck, command: list[str]) -> None:
    floor = await loaded_by(stuck, "-c", "import asyncio, aiosqlite")
    loaded = await loaded_by(stuck, "-m", "harness_adapters.cli", "--db", str(stuck.database), *command)

    assert "argparse" in loaded, "nothing was measured"
    assert {name for name in loaded for slow in SLOW if name == slow or name.startswith(f"{slow}.")} == set()
    assert len(loaded - floor) <= MODULES_OVER_FLOOR_MAX


async def test_the_help_needs_no_database_driver(stuck: Stuck) -> None:
    assert "aiosqlite" not in await loaded_by(stuck, "-m", "harness_adapters.cli", "--help")


async def test_a_look_loads_what_reaches_codex(stuck: Stuck) -> None:
    """So that the other tests would notice it."""
    loaded = await loaded_by(
        stuck, "-m", "harness_adapters.cli", "--db", str(stuck.database), "deliveries", "look", "2"
    )
    assert {"importlib.metadata", "harness_adapters.codex.child"} <= loaded
