"""Ctrl-C in a real terminal, and a reader that goes: each of our programs ends cleanly, and nothing is half done."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import anyio
import pytest

from harness_adapters.cli import COMMANDS
from harness_adapters.composition import Channel
from tests.integration.person_terminal import SOON_S, command, environment
from tests.integration.stuck_deliveries import Stuck, one_more_session
from tests.real.terminal import CTRL_C, Terminal, terminal
from tests.unit.channel.test_old_schemas import make_file, rows_of, schema_of

pytestmark = pytest.mark.timeout(120)

OLD_SCHEMA = 2
WAITS = "waiting until nobody writes to it"
ERASED = "\r\x1b[K"

INTERRUPTED = 130

ON_THE_FILE = {
    "rooms": ["rooms"],
    "who": ["who"],
    "history": ["history", "hall"],
    "tail": ["tail", "hall"],
    "send": ["send", "hall", "reader", "text"],
    "invite": ["invite", "hall", "tester"],
    "message": ["message", "1"],
    "deliveries": ["deliveries"],
    "deliveries show": ["deliveries", "show", "1"],
    "deliveries look": ["deliveries", "look", "1"],
    "deliveries resend": ["deliveries", "resend", "1"],
    "deliveries drop": ["deliveries", "drop", "3"],
    "trim": ["trim", "--older-than", "1m"],
}
"""Commands that open the file; the others have their own tests (OTHERS)."""

OTHERS = {
    "monitor": "below",
    "completion": "it waits for nothing",
    "view": "below",
    "install": "below",
    "uninstall": "as install",
    "status": "it waits for nothing",
    "doctor": "it waits for nothing but what it starts",
}


def test_every_command_is_interrupted_somewhere() -> None:
    assert {name.split()[0] for name in ON_THE_FILE} | set(OTHERS) >= set(COMMANDS)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A file of an older schema, which another process keeps from being upgraded."""
    path = tmp_path / "channel.db"
    make_file(path, OLD_SCHEMA)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield path


async def test_each_command_stops_at_ctrl_c_while_the_file_is_upgraded_and_leaves_it_as_it_was(locked: Path) -> None:
    """All at once: SQLite waits for the lock as long as it was told to, and only then they end."""
    before, ended = (rows_of(locked), schema_of(locked)), {}

    async def interrupt(name: str, arguments: Sequence[str]) -> None:
        async with on_terminal(locked, *arguments) as running:
            await running.wait_for_output(WAITS)
            running.press(CTRL_C)
            status = await running.process.wait()
            await running.wait_until_read()
            ended[name] = (status, "Traceback" in running.output(), running.raw_output().endswith(f"{ERASED}\r\n"))

    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            for name, arguments in ON_THE_FILE.items():
                tasks.start_soon(interrupt, name, arguments)
    assert ended == dict.fromkeys(ON_THE_FILE, (INTERRUPTED, False, True))
    assert (rows_of(locked), schema_of(locked)) == before
    assert list(locked.parent.glob("*.schema-*")) == []


def on_terminal(database: Path, *arguments: str) -> AbstractAsyncContextManager[Terminal]:
    env = {"HOME": str(database.parent), "PATH": os.defpath, "TERM": "xterm"}
    return terminal(
        [sys.executable, "-I", "-m", "harness_adapters.cli", "--db", database, *arguments], env=env, cwd=database.parent
    )


async def end_by_ctrl_c(running: Terminal) -> tuple[int, str]:
    """The exit status, and all that the terminal showed."""
    running.press(CTRL_C)
    status = await running.process.wait()
    await running.wait_until_read()
    return status, running.output()


async def end_while_it_asks(running: Terminal) -> tuple[bool, str]:
    """Whether it ended by Ctrl-C, and all that the terminal showed.

    A signal between a prompt and the read after it is noticed by Python with the next key: Ctrl-C is pressed again, and
    may then come so late that Python itself ends by it.
    """
    status = await running.quit()
    await running.wait_until_read()
    return status in (INTERRUPTED, -signal.SIGINT), running.output()


async def test_tail_stops_at_ctrl_c(stuck: Stuck) -> None:
    with anyio.fail_after(SOON_S):
        async with on_terminal(stuck.database, "tail", "hall") as running:
            await running.wait_for_output("Done.")
            status, shown = await end_by_ctrl_c(running)
    assert (status, "Traceback" in shown) == (INTERRUPTED, False)


async def test_send_that_reads_its_text_from_the_terminal_stops_at_ctrl_c_and_sends_nothing(stuck: Stuck) -> None:
    before = stuck.json("history", "hall")
    with anyio.fail_after(SOON_S):
        async with on_terminal(stuck.database, "send", "hall", "builder", "-") as running:
            await running.wait_for_output("then Ctrl-D")
            running.press("half a mess\r")
            stopped, shown = await end_while_it_asks(running)
    assert (stopped, "Traceback" in shown) == (True, False)
    assert stuck.json("history", "hall") == before


async def test_a_text_that_is_typed_is_sent_at_ctrl_d(stuck: Stuck) -> None:
    with anyio.fail_after(SOON_S):
        async with on_terminal(stuck.database, "send", "hall", "builder", "-") as running:
            await running.wait_for_output("then Ctrl-D")
            running.press("one\r", "two\r", "\x04")
            assert await running.process.wait() == 0
    assert stuck.done("message", "5") == "one\ntwo"


@pytest.mark.parametrize(
    ("arguments", "asks"),
    [(["view", "--no-open"], "Ctrl-C ends the view"), (["install", "--client", "opencode"], "[y/N]")],
)
async def test_what_waits_for_a_person_stops_at_ctrl_c(stuck: Stuck, arguments: list[str], asks: str) -> None:
    with anyio.fail_after(SOON_S):
        async with on_terminal(stuck.database, *arguments) as running:
            await running.wait_for_output(asks)
            stopped, shown = await end_while_it_asks(running)
    assert (stopped, "Traceback" in shown) == (True, False)
    assert {file.name for file in stuck.database.parent.iterdir()} == {"channel.db"}


IMPATIENT = """
import os, signal, sys

class Terminal:
    def isatty(self):
        os.kill(os.getpid(), signal.SIGINT)
        return True

    def write(self, text):
        sys.__stderr__.write(text)

    def flush(self):
        pass

sys.stdin = sys.stderr = Terminal()
from harness_adapters.cli import main
sys.exit(main(["send", "hall", "reader", "-"]))
"""
"""Ctrl-C is pressed whenever the terminal is asked what it is: as the text is asked for, and once more at the end."""


def test_a_second_ctrl_c_ends_nothing_but_what_ends_already() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", IMPATIENT], capture_output=True, text=True, timeout=SOON_S)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "\n")


async def test_the_streamer_stops_at_ctrl_c_and_gives_its_lease_back(stuck: Stuck, channel: Channel) -> None:
    session = one_more_session(channel)
    await channel.membership.join(session, "hall", "guest", None)
    with anyio.fail_after(SOON_S):
        async with on_terminal(stuck.database, "monitor", "--session", "new") as running:
            while not await channel.leases.is_held(session.address):  # noqa: ASYNC110 - another process takes it
                await anyio.sleep(0.02)
            status, shown = await end_by_ctrl_c(running)
    assert (status, "Traceback" in shown) == (0, False)
    assert not await channel.leases.is_held(session.address)


async def test_the_server_stops_at_ctrl_c(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.defpath}
    server = [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(tmp_path / "channel.db")]
    with anyio.fail_after(SOON_S):
        async with terminal(server, env=env, cwd=tmp_path) as running:
            running.press('{"jsonrpc":"2.0","id":1,"method":"ping"}\r')
            await running.wait_for_output('"result":{}')
            status, shown = await end_by_ctrl_c(running)
    assert (status, "Traceback" in shown) == (0, False)


@pytest.mark.parametrize(
    "arguments",
    [arguments for name, arguments in ON_THE_FILE.items() if name not in ("deliveries resend", "send", "trim")]
    + [["completion", "bash"], ["--help"], ["history", "hall", "--json"], ["tail", "hall", "--json"]],
    ids=" ".join,
)
async def test_output_into_a_pipe_that_nobody_reads_ends_without_a_word(stuck: Stuck, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with anyio.fail_after(SOON_S):
            run = await anyio.run_process(command(stuck, *arguments), env=environment(stuck), stdout=write, check=False)
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    ("program", "status"),
    [(["harness_adapters.mcp_server"], 0), (["harness_adapters.cli", "monitor", "--session", "new"], 0)],
    ids=["server", "streamer"],
)
async def test_a_program_of_a_harness_ends_with_its_reader_though_its_input_stays_open(
    tmp_path: Path, program: list[str], status: int
) -> None:
    read, write = os.pipe()
    os.close(read)
    run = [sys.executable, "-I", "-m", *program, "--db", str(tmp_path / "channel.db")]
    with anyio.fail_after(SOON_S):
        process = await anyio.open_process(
            run, env={"HOME": str(tmp_path), "PATH": os.defpath}, stdin=subprocess.PIPE, stdout=write
        )
        async with process:
            os.close(write)
            assert await process.wait() == status
            assert process.stderr is not None
            with pytest.raises(anyio.EndOfStream):
                await process.stderr.receive()


@pytest.mark.parametrize("name", ["history", "tail"])
async def test_without_a_standard_output_it_is_said(stuck: Stuck, name: str) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command(stuck, name, "hall")]
    with anyio.fail_after(SOON_S):
        run = await anyio.run_process(closed, env=environment(stuck), check=False)
    assert run.returncode == 1
    assert b"standard output is closed" in run.stderr
