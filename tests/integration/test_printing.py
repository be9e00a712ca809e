"""What people's commands print: they end with whoever reads it, and say so where it can't be written."""

import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.another_session import open_view
from tests.integration.stuck_deliveries import COMMAND_LINE

RUN_S = 60
TEXT = "a line\n" * 100_000


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The command that prints a message which no pipe holds whole."""
    path = tmp_path / "channel" / "channel.db"
    return [*COMMAND_LINE, "--db", str(path), "message", str(anyio.run(send, path))]


async def send(path: Path) -> int:
    """TEXT, in a new channel; the message's id."""
    async with open_view(path) as channel:
        await channel.session("ann").join("ann")
        await channel.session("bob").join("bob")
        return int((await channel.session("ann").send(TEXT, "bob"))["id"])


def test_a_message_piped_into_head_ends_without_a_word(command: list[str]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a line\n"
        process.stdout.close()
        _, stderr = process.communicate(timeout=RUN_S)
    assert process.returncode == -signal.SIGPIPE
    assert stderr == ""


@pytest.mark.parametrize("words", [[], ["--page", "36"], ["--help"]], ids=["long", "short", "help"])
def test_output_that_can_t_be_written_is_a_failure_with_its_reason(command: list[str], words: list[str]) -> None:
    """What is short stands in a buffer until the end, and is not tried a second time there."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*command, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=RUN_S)
    assert done.returncode == 1
    assert done.stderr == "agent-channel: the output can't be written: No space left on device\n"
