"""The child's transport against programs that misbehave, each a few lines of Python in the place of `codex`."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from harness_adapters.codex import child
from harness_adapters.codex.child import open_child
from harness_adapters.codex.jsonrpc_peer import open_peer
from harness_adapters.codex.transport import NothingSent, TransportClosed, TransportUnavailable

SOON = 15.0
PROJECT = Path(__file__).parents[4]
Program = Callable[[str], Path]

ECHO = """
for line in sys.stdin:
    sys.stdout.write(line)
    sys.stdout.flush()
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def write(source: str) -> Path:
        path = tmp_path / "codex"
        path.write_text(f"#!{sys.executable} -I\nimport json, os, signal, sys, time\n{source}")
        path.chmod(0o700)
        return path

    return write


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_lines_of_mebibytes_pass_both_ways_unchanged(program: Program) -> None:
    lines = ["short", "x" * 3 * 1024 * 1024, "\U0001f600\u2028\x85" * 300_000]
    with anyio.fail_after(SOON):
        async with open_child(program(ECHO)) as transport:
            for line in lines:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(transport.send, line)
                    assert await transport.receive() == line


async def test_it_is_started_as_an_app_server_without_plugins_in_the_given_home(
    program: Program, tmp_path: Path
) -> None:
    source = "print(json.dumps([sys.argv[1:], os.environ['CODEX_HOME'], os.environ['MARK'], os.getcwd()]))"
    with anyio.fail_after(SOON):
        async with open_child(program(source), tmp_path, {**os.environ, "MARK": "m"}) as transport:
            told = await transport.receive()
    assert told == f'[["app-server", "--disable", "plugins"], "{tmp_path}", "m", "/"]'


async def test_without_a_home_the_environment_decides(program: Program) -> None:
    with anyio.fail_after(SOON):
        source = "print(os.environ.get('CODEX_HOME', 'unset'))"
        async with open_child(program(source), None, {"PATH": "/usr/bin"}) as transport:
            assert await transport.receive() == "unset"


@pytest.mark.fault("F27")
@pytest.mark.parametrize("owners", [None, "/owners"])
async def test_the_queue_is_looked_for_where_the_threads_owner_keeps_it_and_not_where_we_would(
    program: Program, owners: str | None
) -> None:
    """Codex: with another CODEX_SQLITE_HOME an add goes into a queue that the owner never reads."""
    source = "print(os.environ.get('CODEX_SQLITE_HOME', 'unset'))"
    ours = {**os.environ, "CODEX_SQLITE_HOME": "/ours"}
    with anyio.fail_after(SOON):
        async with open_child(program(source), None, ours, Path(owners) if owners else None) as transport:
            assert await transport.receive() == (owners or "unset")


async def test_why_it_ended_is_its_status_and_its_last_words_without_colours(program: Program) -> None:
    source = r"""
print("\x1b[31mERROR\x1b[0m first", file=sys.stderr)
print("\x1b[1;31mError:\x1b[0m CODEX_HOME points to nothing\n", file=sys.stderr)
sys.exit(1)
"""
    with anyio.fail_after(SOON):
        async with open_child(program(source)) as transport:
            with pytest.raises(TransportClosed) as caught:
                await transport.receive()
    assert str(caught.value) == ("the codex app-server ended with exit status 1: Error: CODEX_HOME points to nothing")


async def test_a_child_ended_by_a_signal_is_told_as_that(program: Program) -> None:
    with anyio.fail_after(SOON):
        async with open_child(program("os.kill(os.getpid(), signal.SIGKILL)")) as transport:
            with pytest.raises(TransportClosed, match="was ended by signal 9"):
                await transport.receive()


@pytest.mark.fault("F51")
async def test_what_is_sent_to_a_child_that_has_gone_was_not_sent_and_the_reason_is_its_last_words(
    program: Program,
) -> None:
    with anyio.fail_after(SOON):
        async with open_child(program("sys.exit('no home')")) as transport:
            with pytest.raises(TransportClosed):
                await transport.receive()
            with pytest.raises(NothingSent, match="exit status 1: no home"):
                await transport.send("line")


@pytest.mark.fault("F51")
@pytest.mark.parametrize("kind", ["missing", "folder", "not executable", "no program", "no interpreter"])
async def test_what_cannot_be_started_is_unavailable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "codex"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("#!/nonexistent/interpreter\n" if kind == "no interpreter" else "\x00\x01")
        path.chmod(0o600 if kind == "not executable" else 0o700)
    with anyio.fail_after(SOON), pytest.raises(TransportUnavailable, match=r"codex can't be started: \w+"):
        async with open_child(path):
            pass


async def test_a_banner_before_the_json_does_no_harm(program: Program) -> None:
    source = """
print("Welcome!\\n\\n{not json}")
request = json.loads(sys.stdin.readline())
print(json.dumps({"id": request["id"], "result": "yes"}), flush=True)
sys.stdin.read()
"""
    with anyio.fail_after(SOON):
        async with open_child(program(source)) as transport, open_peer(transport, lambda *_: None) as peer:
            assert await peer.request("thread/turns/list", {}, within_s=SOON) == "yes"


async def test_a_flood_on_stderr_does_not_stop_it(program: Program) -> None:
    source = """
for _ in range(200):
    sys.stderr.write("\\x1b[31mERROR\\x1b[0m " + "x" * 10_000 + "\\n")
print("still here", flush=True)
sys.stdin.read()
"""
    with anyio.fail_after(SOON):
        async with open_child(program(source)) as transport:
            assert await transport.receive() == "still here"


@pytest.mark.fault("F24")
@pytest.mark.parametrize(
    "stubborn",
    [
        pytest.param("sys.stdin.read()", id="obedient"),
        pytest.param("time.sleep(600)", id="ignores the end of stdin"),
        pytest.param(
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(0, flush=True)\ntime.sleep(600)",
            id="ignores SIGTERM too",
        ),
        pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", id="stopped"),
        pytest.param("while True: print('x' * 100_000)", id="floods stdout"),
        pytest.param("os.close(1)\nsys.stdin.read()", id="closed stdout"),
    ],
)
async def test_leaving_ends_the_child_whatever_it_does(
    program: Program, stubborn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "EOF_GRACE_S", 0.2)
    monkeypatch.setattr(child, "TERM_GRACE_S", 0.2)
    with anyio.fail_after(SOON):
        async with open_child(program(f"print('ready', flush=True)\n{stubborn}")) as transport:
            assert await transport.receive() == "ready"
        assert gone(transport.pid)


@pytest.mark.fault("F24")
async def test_what_the_child_started_ends_with_it_where_it_has_to_be_ended(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher that does not pass the end of stdin on: the signals reach its whole group."""
    monkeypatch.setattr(child, "EOF_GRACE_S", 0.2)
    inner = linked_to(tmp_path / "s") + "import time; time.sleep(600)"
    source = f"""
import subprocess
subprocess.Popen([sys.executable, "-c", {inner!r}], stdin=subprocess.DEVNULL).wait()
"""
    with anyio.fail_after(SOON):
        async with await anyio.create_unix_listener(tmp_path / "s") as listener:
            async with open_child(program(source)):
                link: SocketStream = await listener.accept()
            async with link:
                await has_ended(link)


async def test_cancelling_the_body_ends_the_child_as_well(program: Program) -> None:
    with anyio.fail_after(SOON):
        with anyio.CancelScope() as scope:
            async with open_child(program(ECHO)) as transport:
                await transport.send("up")
                assert await transport.receive() == "up"
                scope.cancel()
                await transport.receive()
        assert gone(transport.pid)


async def test_a_line_that_the_child_does_not_read_is_broken_off_by_closing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a pipe holds: a part is out, so this is not `NothingSent`."""
    monkeypatch.setattr(child, "EOF_GRACE_S", 0.2)
    with anyio.fail_after(SOON):
        async with open_child(program("time.sleep(600)")) as transport:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_close_when_blocked, transport)
                with pytest.raises(TransportClosed):
                    await transport.send("x" * 3_000_000)


async def _close_when_blocked(transport: child.ChildTransport) -> None:
    await anyio.wait_all_tasks_blocked()
    await transport.aclose()


HOLDER = """
import subprocess, sys
from pathlib import Path
import anyio
from harness_adapters.codex.child import open_child

async def main():
    async with open_child(Path(sys.argv[1])) as transport:
        # Another child, that lives on and was not told to close what it could inherit.
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], close_fds=False)
        print(await transport.receive(), flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.fault("F24")
async def test_the_child_ends_when_we_are_killed(program: Program, tmp_path: Path) -> None:
    codex = program(linked_to(tmp_path / "s") + "print('ready', flush=True)\nsys.stdin.read()")
    with anyio.fail_after(SOON):
        async with await anyio.create_unix_listener(tmp_path / "s") as listener:
            command = [sys.executable, "-c", HOLDER, str(codex)]
            async with await anyio.open_process(command, cwd=PROJECT, stderr=None) as holder:
                link: SocketStream = await listener.accept()
                async with link:
                    assert holder.stdout is not None
                    assert (await holder.stdout.receive()).startswith(b"ready")
                    holder.send_signal(signal.SIGKILL)
                    await has_ended(link)


def linked_to(path: Path) -> str:
    """Source of a program that holds a connection to a socket for as long as it lives."""
    return f"import socket\nlink = socket.socket(socket.AF_UNIX)\nlink.connect({str(path)!r})\n"


async def has_ended(link: SocketStream) -> None:
    """Return once the program that holds the other end of `link` is gone."""
    with pytest.raises(anyio.EndOfStream):
        await link.receive()


@pytest.mark.fault("F24")
async def test_many_children_leave_no_open_file_behind(program: Program) -> None:
    codex = program("sys.stdin.read()")
    with anyio.fail_after(SOON):
        async with open_child(codex):
            pass
        before = open_files()
        for _ in range(20):
            async with open_child(codex):
                pass
        assert open_files() == before


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())
