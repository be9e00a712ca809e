"""Identities and ancestors, seen on real processes: ours."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import anyio
import psutil
import pytest

from fakes.clock import FakeClock
from waiters import processes
from waiters.processes import ProcessIdentity


@contextmanager
def cat(program: str | Path = "/bin/cat", env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A `cat` that runs: the system tells its name, arguments and environment a little after Popen returns."""
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"!")
        process.stdin.flush()
        assert process.stdout.read(1) == b"!"
        yield process
        process.kill()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with cat() as process:
        yield process


def test_this_process_is_alive_and_knows_itself() -> None:
    own = processes.own_identity()

    assert own.pid == os.getpid()
    assert processes.is_alive(own) is True
    assert processes.identity_of(os.getpid()) == own


def test_an_identity_survives_its_text(child: subprocess.Popen[bytes]) -> None:
    identity = processes.identity_of(child.pid)

    assert identity is not None
    text = identity.to_text()
    assert ProcessIdentity.from_text(text) == identity
    assert all(character.isalnum() or character in ".-_" for character in text)


@pytest.mark.parametrize(
    "text", ["", "12", "12.5.4026531836", "x.5.4026531836.boot", "12.5.40.bo ot", "12.5.40.boot\n"]
)
def test_other_text_is_no_identity(text: str) -> None:
    with pytest.raises(ValueError, match="not a process identity"):
        ProcessIdentity.from_text(text)


def test_a_killed_process_is_dead_even_before_it_is_reaped(child: subprocess.Popen[bytes]) -> None:
    identity = processes.identity_of(child.pid)
    assert identity is not None

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.is_alive(identity) is False
    assert processes.identity_of(child.pid) is None

    child.wait()
    assert processes.is_alive(identity) is False
    assert processes.parent_of(child.pid) is None
    assert processes.name_of(child.pid) is None


def test_a_stopped_process_is_alive(child: subprocess.Popen[bytes]) -> None:
    identity = processes.identity_of(child.pid)
    assert identity is not None
    child.send_signal(signal.SIGSTOP)

    assert processes.is_alive(identity) is True


@pytest.mark.fault("F32")
def test_another_process_under_the_same_pid_is_not_the_one_of_the_identity() -> None:
    own = processes.own_identity()

    assert processes.is_alive(replace(own, start=own.start - 1)) is False


@pytest.mark.fault("F32")
def test_a_process_of_another_boot_is_dead() -> None:
    assert processes.is_alive(replace(processes.own_identity(), boot_id="another")) is False


@pytest.mark.fault("F32")
def test_a_process_of_another_pid_namespace_can_not_be_judged() -> None:
    assert processes.is_alive(replace(processes.own_identity(), pid_namespace="1")) is None


def test_the_ancestors_begin_with_the_parent_and_end_at_the_top() -> None:
    chain = list(processes.ancestors(os.getpid()))

    assert chain[0] == os.getppid()
    assert chain == [parent.pid for parent in psutil.Process().parents()]


def test_a_name_with_brackets_and_blanks_is_read_whole(tmp_path: Path) -> None:
    program = tmp_path / "a) R (b"
    program.symlink_to("/bin/cat")
    with cat(program) as process:
        assert processes.name_of(process.pid) == "a) R (b"
        assert processes.parent_of(process.pid) == os.getpid()
        assert processes.command_line(process.pid) == [str(program)]


def test_the_environment_and_the_program_of_a_process_can_be_had() -> None:
    with cat(env={"MARK": "a b"}) as process:
        assert processes.environment(process.pid) == {"MARK": "a b"}
        program = processes.executable(process.pid)
        assert program is not None
        assert Path(program).resolve() == Path("/bin/cat").resolve()


def test_a_process_that_is_gone_has_nothing_to_tell(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()

    assert processes.command_line(child.pid) is None
    assert processes.environment(child.pid) is None
    assert processes.executable(child.pid) is None
    assert list(processes.ancestors(child.pid)) == []


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EACCES])
def test_of_a_process_that_the_system_does_not_tell_of_it_is_not_known(
    monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes], code: int
) -> None:
    """No descriptor is left, or others' processes are hidden: neither alive nor dead, and no error."""
    identity = processes.identity_of(child.pid)
    assert identity is not None

    def refuse(*_arguments: object, **_names: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    assert processes.is_alive(identity) is None


async def test_the_end_of_a_process_is_waited_for_without_a_timer(child: subprocess.Popen[bytes]) -> None:
    identity = processes.identity_of(child.pid)
    assert identity is not None
    clock = FakeClock()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(processes.wait_ended, identity, clock)
            await anyio.wait_all_tasks_blocked()
            assert clock.asleep() == []
            child.kill()


async def test_the_end_of_a_process_that_has_ended_before_is_told_at_once(child: subprocess.Popen[bytes]) -> None:
    identity = processes.identity_of(child.pid)
    assert identity is not None

    with anyio.fail_after(5):
        await processes.wait_ended(replace(identity, start=identity.start - 1), FakeClock())
        child.kill()
        child.wait()
        await processes.wait_ended(identity, FakeClock())


async def test_where_the_system_tells_of_no_end_a_process_is_looked_at(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "another")
    identity = processes.identity_of(child.pid)
    assert identity is not None
    clock = FakeClock()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(processes.wait_ended, identity, clock)
            await clock.until_asleep(5)
            child.kill()
            child.wait()
            clock.advance(5)


def test_psutil_tells_the_same_as_proc(child: subprocess.Popen[bytes]) -> None:
    """The way of other systems; the start has another unit there."""
    by_psutil = processes._stat_from_psutil(child.pid)

    assert by_psutil is not None
    assert by_psutil[:3] == processes._stat(child.pid)[:3]  # type: ignore[index]
    assert processes._command_line_from_psutil(child.pid) == processes.command_line(child.pid)

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = processes._stat_from_psutil(child.pid)
    assert zombie is not None and zombie.ended
    child.wait()
    assert processes._stat_from_psutil(child.pid) is None


def test_identities_cost_no_import_of_psutil() -> None:
    code = (
        "import sys, os; from waiters import processes; me = processes.own_identity(); processes.is_alive(me);"
        "list(processes.ancestors(me.pid)); processes.command_line(me.pid); sys.exit('psutil' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
