"""The Monitor host on real commands: it does to a command what Claude Code 2.1.332 was measured to do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread

from channel.clock import SystemClock
from fakes.monitor_host import monitor
from waiters.processes import identity_of, is_alive

LIMIT_S = 20

CLOCK = SystemClock()

SAY_WHEN_TERMINATED = "trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
SURVIVE_TERM = "trap '' TERM; echo ready; while :; do sleep 0.02; done"


async def test_the_lines_of_a_command_become_events_and_its_end_a_notice() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor("echo a; echo; echo '  b'; read -r line; exit 3", clock=CLOCK) as host:
            assert await host.wait_ended() == 3
            (notification,) = host.notifications.items

    assert (notification.kind, notification.text, notification.exit_code) == ("failed", "a\nb", 3)


async def test_an_event_comes_while_the_command_runs() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor("echo a; sleep 60", clock=CLOCK) as host:
            assert await host.next_event() == "a"
            assert host.suppressed == 0


async def test_stderr_is_no_event() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor("echo trouble >&2; echo fine", clock=CLOCK) as host:
            await host.wait_ended()

            assert [notification.text for notification in host.notifications.items] == ["fine"]
            assert host.stderr == b"trouble\n"


async def test_the_command_finds_itself_as_under_claude_code(tmp_path: Path) -> None:
    """A leader of its own group and session, sockets as stdout and stderr, no input, Claude's pid."""
    report = (
        "import os, stat, sys; kind = lambda fd: stat.S_ISSOCK(os.fstat(fd).st_mode);"
        "print(os.getpgid(0) == os.getsid(0) == os.getppid(), kind(1), kind(2), os.readlink('/proc/self/fd/0'),"
        " os.environ['CLAUDE_PID'], os.environ['MARK'], os.getcwd())"
    )
    with anyio.fail_after(LIMIT_S):
        command = f'{sys.executable} -c "{report}"; true'
        async with monitor(command, clock=CLOCK, environment={"MARK": "m"}, cwd=tmp_path) as host:
            await host.wait_ended()
            assert host.notifications.items[0].text == f"True True True /dev/null {os.getpid()} m {tmp_path}"


async def test_a_stop_is_a_sigterm_of_which_the_session_is_told_nothing() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor(SAY_WHEN_TERMINATED, clock=CLOCK) as host:
            assert await host.next_event() == "ready"
            host.stop()
            assert await host.wait_ended() in (0, -signal.SIGTERM)
            assert [notification.kind for notification in host.notifications.items] == ["event"]


async def test_what_survives_sigterm_is_killed() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor(SURVIVE_TERM, clock=CLOCK) as host:
            assert await host.next_event() == "ready"
            host.stop()
            assert await host.wait_ended() == -signal.SIGKILL


async def test_the_end_of_its_time_is_told_and_ends_the_command() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor(SAY_WHEN_TERMINATED, clock=CLOCK, timeout_s=1) as host:
            expired = await host.notifications.wait_for(lambda notification: notification.kind == "expired")
            await host.wait_ended()

    assert expired.text.startswith("[Monitor expired after 1s with 1 event delivered.")
    assert host.notifications.items[-1] is expired


async def test_a_vanished_host_hangs_up_without_a_signal(tmp_path: Path) -> None:
    report = (
        "import pathlib, select; hang_up = select.poll(); hang_up.register(1, 0); print('ready', flush=True);"
        "pathlib.Path('seen').write_text(str(hang_up.poll() == [(1, select.POLLHUP)]))"
    )
    with anyio.fail_after(LIMIT_S):
        async with monitor(f'{sys.executable} -c "{report}"', clock=CLOCK, cwd=tmp_path) as host:
            assert await host.next_event() == "ready"
            host.vanish()
            assert await host.wait_ended() == 0
            assert (tmp_path / "seen").read_text() == "True"
            assert [notification.kind for notification in host.notifications.items] == ["event"]


async def test_while_the_host_does_not_read_nothing_is_taken(tmp_path: Path) -> None:
    # Two, since a second writer could meet the first reader.
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "end")
    report = (
        "import array, fcntl, sys, termios; print('ready', flush=True); open('go').read();"
        "print('x' * 100, flush=True); left = array.array('i', [0]); fcntl.ioctl(1, termios.TIOCOUTQ, left);"
        "print(left[0] > 0, file=sys.stderr, flush=True); open('end').read()"
    )
    with anyio.fail_after(LIMIT_S):
        async with monitor(f'{sys.executable} -c "{report}"', clock=CLOCK, cwd=tmp_path) as host:
            assert await host.next_event() == "ready"
            host.pause_reading()
            await anyio.to_thread.run_sync((tmp_path / "go").write_text, "")
            # It has written once it opens this, and ends when this is closed.
            with await anyio.to_thread.run_sync((tmp_path / "end").open, "w"):
                assert [notification.kind for notification in host.notifications.items] == ["event"]

            host.resume_reading()
            await host.wait_ended()
            assert host.stderr == b"True\n"
            assert host.notifications.items[-1].text == "x" * 100


async def test_leaving_the_host_leaves_no_process() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor(SURVIVE_TERM, clock=CLOCK) as host:
            await host.next_event()
            shell = identity_of(host.pid)
            assert shell is not None

    assert is_alive(shell) is False


class FastClock(SystemClock):
    """Fifty times as fast as the machine's."""

    def monotonic(self) -> float:
        return 50 * super().monotonic()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 50)


async def test_a_flood_stops_the_monitor_after_thirty_seconds() -> None:
    with anyio.fail_after(LIMIT_S):
        async with monitor("while :; do echo flood; sleep 0.005; done", clock=FastClock()) as host:
            stopped = await host.notifications.wait_for(lambda notification: notification.kind == "stopped")
            assert await host.wait_ended() == -signal.SIGTERM

    assert host.notifications.items[-1] is stopped
    assert host.suppressed > 20


def test_it_runs_by_itself() -> None:
    command = [sys.executable, "-m", "fakes.monitor_host", "--", "echo '<a>'; sleep 0.5; exit 2"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)

    assert completed.returncode == 2
    assert "<event>&lt;a&gt;</event>" in completed.stdout
    assert "script failed (exit 2)" in completed.stdout
