"""The doctor as a person runs it: what is printed, the exit status, and that it stays quiet where nothing is there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from channel.clock import SystemClock
from harness_adapters.doctor.finding import Level
from harness_adapters.doctor.leftovers import leftover_processes
from tests.doctor_world import named
from tests.integration.stuck_deliveries import COMMAND_LINE
from waiters.processes import identity_of, is_alive

RUN_S = 60
START_AND_LEAVE = """
import subprocess, sys
nothing = subprocess.DEVNULL
print(subprocess.Popen(sys.argv[1:], stdin=nothing, stdout=nothing, stderr=nothing).pid)
"""


def doctor(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a HOME without any harness."""
    return subprocess.run(
        [*COMMAND_LINE, "doctor", *arguments],
        env={"HOME": str(home), "PATH": "/nowhere"},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )


def test_each_line_says_pass_warn_or_fail_and_the_last_counts_them(tmp_path: Path) -> None:
    ran = doctor(tmp_path)
    *lines, _, summary = ran.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"pass", "warn", ">"}
    assert summary.endswith(" warn, 0 fail")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_failed_is_in_the_exit_status_and_in_json(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    ran = doctor(tmp_path, "--json")
    answer = json.loads(ran.stdout)
    [fault] = [each for each in answer["findings"] if each["level"] == "fail"]
    assert (fault["subject"], answer["counts"]["fail"], ran.returncode) == ("harness", 1, 1)
    assert "no `claude` on PATH" in fault["proved"]


@pytest.mark.parametrize("arguments", [["bob"], ["--probe"], ["--probe", "bob", "--within", "0"]])
def test_a_wrong_call_is_told_from_a_failure(tmp_path: Path, arguments: list[str]) -> None:
    assert doctor(tmp_path, *arguments).returncode == 2


def test_a_probe_without_a_channel_says_that_there_is_none(tmp_path: Path) -> None:
    ran = doctor(tmp_path, "--probe", "bob")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "There is no channel at" in ran.stderr


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[int]:
    """A streamer whose harness has ended, and that nobody ended with it."""
    streamer = [*COMMAND_LINE, "monitor", "--db", str(tmp_path / "channel.db"), "--session", "gone"]
    parent = [sys.executable, "-I", "-c", START_AND_LEAVE, *streamer]
    pid = int(subprocess.run(parent, check=True, capture_output=True, text=True, timeout=RUN_S).stdout)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_a_streamer_whose_harness_has_ended_is_a_leftover(orphan: int) -> None:
    with anyio.fail_after(RUN_S):
        findings = [each async for each in leftover_processes(SystemClock())]
    fault = named(findings, Level.WARN, f"a streamer, process {orphan}, is left over")
    assert fault.to_do.startswith(f"kill {orphan};")
    identity = identity_of(orphan)
    assert identity is not None
    assert is_alive(identity)
