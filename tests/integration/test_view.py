"""`agent-channel view` as a process: what it prints, where it listens, how it ends."""

import os
import re
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from harness_adapters.view.serving import CONNECTIONS_MAX
from tests.integration.stuck_deliveries import COMMAND_LINE, Stuck, stuck_deliveries
from tests.real.terminal import CTRL_C, terminal
from tests.view.served import Served, served

pytestmark = pytest.mark.timeout(120)

SOON_S = 60

OK = b"HTTP/1.1 200"

CROWD = 300

OWN_FILES_MAX = 32
"""Of the view itself: the database, its log, the event loop."""

BROWSER = """#!/bin/sh
printf '%s\\n' "$1" >"$NOTES.arguments"
file=${1#file://}
ls -ld "$(dirname "$file")" | cut -c 1-10 >>"$NOTES.arguments"
cp "$file" "$NOTES.page"
"""
"""Notes what it was started with, and what it was to show."""


@pytest.fixture
async def stuck(tmp_path: Path) -> Stuck:
    return await stuck_deliveries(tmp_path)


def listening(view: Served) -> list[tuple[str, int]]:
    found = psutil.Process(view.process.pid).net_connections(kind="inet")
    return [(each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN]


async def test_it_listens_on_loopback_only_and_its_token_is_new_each_time(stuck: Stuck) -> None:
    with served(stuck.database) as one, served(stuck.database) as other:
        for view in (one, other):
            port = int(view.origin.removeprefix("http://127.0.0.1:"))
            assert listening(view) == [("127.0.0.1", port)]
            assert re.fullmatch(r"[0-9a-f]{32}", view.token)
        assert one.token != other.token


async def test_a_port_that_is_taken_is_told_with_what_to_do(stuck: Stuck) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert stuck.refused("view", "--port", str(port)) == (
            f"agent-channel: Port {port} of 127.0.0.1 can't be listened to: Address already in use. "
            "Name another with --port, or none.\n"
        )


async def test_any_number_of_connections_that_say_nothing_keeps_no_page_out(stuck: Stuck) -> None:
    """Anybody on the machine can open them, without the token."""
    with served(stuck.database) as view, ExitStack() as crowd:
        address = ("127.0.0.1", int(view.origin.rpartition(":")[2]))
        request = (
            f"GET /api/{{}} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nx-agent-channel-token: {view.token}\r\n\r\n"
        )
        page = crowd.enter_context(socket.create_connection(address, SOON_S))
        page.sendall(request.format("feed").encode())
        assert page.recv(len(OK)) == OK
        for each in range(CROWD):
            silent = crowd.enter_context(socket.create_connection(address, SOON_S))
            if each % 2:
                silent.sendall(b"GET / HTTP/1.1\r\nHost:")
        another = crowd.enter_context(socket.create_connection(address, SOON_S))
        another.sendall(request.format("messages").encode())
        assert another.recv(len(OK)) == OK
        with anyio.fail_after(SOON_S):
            while psutil.Process(view.process.pid).num_fds() > CONNECTIONS_MAX + OWN_FILES_MAX:
                await anyio.lowlevel.checkpoint()
        assert b"event: rooms" in page.recv(100_000)
        assert view.end() == (130, "", "")


def test_a_channel_that_nobody_has_made_is_not_made_by_looking(tmp_path: Path) -> None:
    missing = tmp_path / ".agent-channel" / "channel.db"
    run = subprocess.run(
        [*COMMAND_LINE, "--db", str(missing), "view"],
        env={"HOME": str(tmp_path), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=SOON_S,
    )
    assert (run.returncode, run.stdout, missing.exists()) == (1, "", False)
    assert "no session has joined one yet" in run.stderr


@pytest.mark.parametrize(("by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)])
async def test_it_ends_at_once_and_says_nothing_also_with_a_page_open(
    stuck: Stuck, by: signal.Signals, status: int
) -> None:
    with served(stuck.database) as view:
        with socket.create_connection(("127.0.0.1", int(view.origin.rpartition(":")[2]))) as page:
            page.sendall(
                f"GET /api/feed HTTP/1.1\r\nHost: {view.origin.removeprefix('http://')}\r\n"
                f"X-Agent-Channel-Token: {view.token}\r\n\r\n".encode()
            )
            received = b""
            while b"event: hour" not in received:
                received += page.recv(65_536)
            assert view.end(by) == (status, "", "")


async def test_on_a_terminal_a_browser_is_given_the_address_in_a_file_that_no_other_account_can_read(
    stuck: Stuck, tmp_path: Path
) -> None:
    """What stands in a process's arguments every account can read."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    notes = tmp_path / "noted"
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.defpath,
        "DISPLAY": ":0",
        "BROWSER": f"{browser} %s",
        "NOTES": str(notes),
    }
    command = [*COMMAND_LINE, "--db", str(stuck.database), "view"]
    with anyio.fail_after(SOON_S):
        async with terminal(command, env=environment, cwd=tmp_path) as shell:
            await shell.wait_for_output("Ctrl-C ends the view.")
            [address] = re.findall(r"http://127\.0\.0\.1:\d+/#[0-9a-f]{32}", shell.output())
            page = tmp_path / "noted.page"
            while not page.exists() or address not in page.read_text():
                await anyio.lowlevel.checkpoint()
            opened, mode = (tmp_path / "noted.arguments").read_text().splitlines()
            assert mode == "drwx------" and address.partition("#")[2] not in opened
            shell.press(CTRL_C)
            assert await shell.process.wait() == 130
            await shell.wait_until_read()
            assert "Traceback" not in shell.output()
    assert not Path(opened.removeprefix("file://")).exists()


async def test_no_browser_is_opened_if_that_is_asked_for(stuck: Stuck, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.defpath, "DISPLAY": ":0", "BROWSER": f"touch {tmp_path}/opened"}
    command = [*COMMAND_LINE, "--db", str(stuck.database), "view", "--no-open"]
    with anyio.fail_after(SOON_S):
        async with terminal(command, env=environment, cwd=tmp_path) as shell:
            await shell.wait_for_output("Ctrl-C ends the view.")
            assert await shell.quit() == 130
    assert not (tmp_path / "opened").exists()


async def test_what_serves_is_loaded_by_no_other_command_and_the_protocol_library_by_none(stuck: Stuck) -> None:
    program = (
        "import sys; from harness_adapters.cli import main; main(sys.argv[1:]);"
        "print(sorted({'starlette', 'uvicorn', 'mcp', 'pydantic'} & set(sys.modules)))"
    )

    def loaded(*arguments: str) -> str:
        command = [COMMAND_LINE[0], "-I", "-c", program, "--db", str(stuck.database), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=SOON_S).stdout.splitlines()[-1]

    assert loaded("deliveries") == "[]"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert loaded("view", "--port", str(taken.getsockname()[1])) == "['starlette', 'uvicorn']"
