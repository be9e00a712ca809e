"""What `make` runs for minutes, in a real terminal: it says how far it is, and Ctrl-C ends it with nothing left."""

import os
import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from tests.real.terminal import CTRL_C, terminal

ROOT = Path(__file__).parents[1]
SOON_S = 100

CAMPAIGNS = {
    "simulate": (["tests.simulation", "--seed", "1", "--steps", "1000000"], "00 steps"),
    "crowd": (["tests.crash.crowd", "--minutes", "60"], "kills, "),
    "kill-matrix": (["tests.crash.kill_matrix", "--only", "monitor", "--jobs", "2"], " worlds, 0 broken"),
    "soak": (["tests.soak", "--minutes", "60"], "60 minutes"),
    "bench": (["tests.bench", "--only", "idle"], "measuring idle"),
    "growth": (["tests.bench.growth", "--messages", "3000"], "timing the calls"),
    "demo": (["tests.demo"], "runs in Monitor"),
}
"""What is run, and what it shows once it is at work."""


@pytest.mark.timeout(SOON_S + 20)
@pytest.mark.parametrize("campaign", CAMPAIGNS)
async def test_ctrl_c_ends_a_campaign_with_nothing_left_behind(campaign: str, tmp_path: Path) -> None:
    arguments, at_work = CAMPAIGNS[campaign]
    env = {"HOME": str(tmp_path), "PATH": os.defpath, "TERM": "xterm", "TMPDIR": str(tmp_path)}
    with anyio.fail_after(SOON_S):
        async with terminal([sys.executable, "-m", *arguments], env=env, cwd=ROOT) as running:
            await running.wait_for_output(at_work)
            running.press(CTRL_C)
            status = await running.process.wait()
            await running.wait_until_read()
    assert as_in_a_shell(status) == 130, running.output()
    assert "Traceback" not in running.output()
    assert running.output().endswith("Stopped: no result, and nothing is left behind.\r\n")
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []


async def test_a_campaign_whose_output_nobody_reads_ends_without_a_word() -> None:
    read, write = os.pipe()
    os.close(read)
    with anyio.fail_after(SOON_S):
        run = await anyio.run_process(
            [sys.executable, "-m", "tests.simulation", "--seed", "1", "--steps", "20"],
            cwd=ROOT,
            stdout=write,
            check=False,
        )
    os.close(write)
    assert run.returncode == -signal.SIGPIPE
    assert b"Traceback" not in run.stderr


def as_in_a_shell(status: int) -> int:
    """A program that a signal ended has the same status there as one that says so itself."""
    return status if status >= 0 else 128 - status


def processes_in(folder: Path) -> list[str]:
    """Command lines of what still runs on files of a folder."""
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(folder) in line]
