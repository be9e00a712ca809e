"""Which file a command opens: people's commands may be told by the environment, what a harness starts may not.

Ours: Codex passes no variable of ours on and Claude Code does, so the two sides would open different files.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

LIMIT_S = 40


async def run(tmp_path: Path, *arguments: str, stdout: int) -> bytes:
    """What a command says on its standard error, AGENT_CHANNEL_DB being set."""
    with anyio.fail_after(LIMIT_S):
        ended = await anyio.run_process(
            [sys.executable, "-I", "-m", "harness_adapters.cli", *arguments],
            stdout=stdout,
            check=False,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "AGENT_CHANNEL_DB": str(tmp_path / "variable.db")},
        )
    return ended.stderr


@pytest.fixture
def without_reader() -> Iterator[int]:
    """A pipe that nobody reads: a streamer opens its file, finds that out and ends."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


async def test_a_persons_command_opens_what_the_variable_names_unless_it_is_told_another(
    tmp_path: Path, without_reader: int
) -> None:
    by_variable = await run(tmp_path, "message", "1", stdout=without_reader)
    by_option = await run(tmp_path, "--db", str(tmp_path / "option.db"), "message", "1", stdout=without_reader)
    assert f"no channel at {tmp_path / 'variable.db'}".encode() in by_variable
    assert f"no channel at {tmp_path / 'option.db'}".encode() in by_option


async def test_no_variable_decides_for_a_streamer(tmp_path: Path, without_reader: int) -> None:
    await run(tmp_path, "monitor", "--session", "a-key", stdout=without_reader)
    assert (tmp_path / ".agent-channel" / "channel.db").exists()
    assert not (tmp_path / "variable.db").exists()
