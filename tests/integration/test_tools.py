"""The four tools, through our real server process, in both protocol eras."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from harness_adapters.tool_texts import INSTRUCTIONS, TOOLS
from tests.integration.server import ERAS, Refused, ServerClient, running_server

BUDGET_CHARACTERS = 3_600
LONGEST_CHARACTERS = 2_000


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "channel" / "channel.db"


@asynccontextmanager
async def two_in_a_room(database: Path, era: str) -> AsyncIterator[tuple[ServerClient, ServerClient]]:
    """alice and bob in the room `hall`, each behind a server of its own."""
    async with running_server(database, era=era) as alice, running_server(database, era=era) as bob:
        await alice.call("join", room="hall", name="alice")
        await bob.call("join", room="hall", name="bob")
        yield alice, bob


@asynccontextmanager
async def streamer(command: str, home: Path) -> AsyncIterator[anyio.abc.Process]:
    """The command that `join` returned, as a host without Monitor runs it."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    async with await anyio.open_process(shlex.split(command), env=environment, stderr=None) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()


async def test_join_answers_who_is_there_and_how_messages_reach_the_session(database: Path, era: str) -> None:
    async with running_server(database, era=era) as alice, running_server(database, era=era) as bob:
        first = await alice.call("join", room="hall", name="alice", policy="be brief")
        second = await bob.call("join", room="hall", name="bob")

    assert first["room"] == "hall"
    assert first["name"] == "alice"
    assert first["channel"] == str(database)
    assert first["policy"] == second["policy"] == "be brief"
    assert first["waiter"] == "offline"
    assert shlex.split(first["command"])[:5] == [sys.executable, "-I", "-m", "harness_adapters.cli", "monitor"]
    assert "timeout_ms 1800000" in first["how"]
    assert second["registered_roles"] == ["alice", "bob"]
    assert list(second["role_statuses"]) == ["alice"]
    assert "pending" not in first, "a field that says nothing is left out"


async def test_a_policy_is_emptied_by_an_empty_text_and_stays_when_left_out(database: Path, era: str) -> None:
    async with running_server(database, era=era) as alice:
        await alice.call("join", room="hall", name="alice", policy="be brief")
        assert (await alice.call("join", room="hall", name="alice"))["policy"] == "be brief"
        assert "policy" not in await alice.call("join", room="hall", name="alice", policy="")


async def test_a_message_arrives_as_lines_of_the_streamer_exactly(database: Path, era: str, tmp_path: Path) -> None:
    async with two_in_a_room(database, era) as (alice, bob):
        command = (await bob.call("join", room="hall", name="bob"))["command"]
        async with streamer(command, tmp_path) as process:
            sent = await alice.call("send", text="one\n\n  two", to="bob")
            assert process.stdout is not None
            shown = await process.stdout.receive()
            again = await bob.call("join", room="hall", name="bob")

    assert shown.decode() == f"{sent['id']} hall alice\n|one\n|\n|  two\n"
    assert sent["to"]["bob"]["state"] == "pending"
    assert again["waiter"] == "active"
    assert "command" not in again


async def test_a_deaf_session_is_told_so_by_every_answer(database: Path, era: str) -> None:
    async with two_in_a_room(database, era) as (alice, _bob):
        sent = await alice.call("send", text="hello")
        renamed = await alice.call("rename", name="anna")
        await alice.call("join", room="cellar", name="anna")
        left = await alice.call("leave", room="hall")

    for answer in (sent, renamed, left):
        assert answer["waiter"] == "offline"
        assert answer["command"]


async def test_rename_and_leave_say_what_they_did(database: Path, era: str) -> None:
    async with two_in_a_room(database, era) as (alice, bob):
        await alice.call("send", text="hello", to="bob")
        renamed = await bob.call("rename", name="robert")
        left = await bob.call("leave")
        with pytest.raises(Refused, match=r"has joined no room.*Call join"):
            await bob.call("send", text="hello")

    assert (renamed["room"], renamed["name"], renamed["was"]) == ("hall", "robert", "bob")
    assert left == {"left": {"hall": "robert"}, "withdrawn": 1}


REFUSED_CALLS = (
    ("send", {"text": "x", "to": "carol"}, r"no role 'carol'.*The roles there are: bob"),
    ("send", {"text": "x", "to": "alice"}, r"own role"),
    ("send", {"text": "x", "room": "cellar"}, r"no role in the room 'cellar'; it has joined hall"),
    ("send", {"text": ""}, r"it is empty"),
    ("send", {"text": "x" * 1_000_001}, r"1,000,001 characters, and at most 1,000,000"),
    ("send", {"text": 7}, r"takes a text as 'text', not a int"),
    ("send", {}, r"needs 'text'"),
    ("send", {"text": "x", "to": []}, r"1 to 200 names"),
    ("send", {"text": "x", "to": "a b"}, r"role name 'a b' can't be used: it holds a blank"),
    ("send", {"text": "x", "recipient": "bob"}, r"takes text, to, room; it knows no 'recipient'"),
    ("join", {"room": "hall", "name": "anna"}, r"'alice' in the room 'hall' already.*rename"),
    ("join", {"room": "a b", "name": "x"}, r"room name 'a b' can't be used: it holds a blank"),
    ("join", {"room": "hall2", "name": "a<b"}, r"role name 'a<b' can't be used"),
    ("join", {"room": "hall2", "name": "x", "policy": "p" * 2_001}, r"2,001 characters, and at most 2,000"),
    ("rename", {"name": "bob"}, r"'bob' is taken"),
    ("rename", {"name": "agent-channel"}, r"own notices"),
    ("leave", {"room": "cellar"}, r"no role in the room 'cellar'"),
)


async def test_an_error_says_what_is_wrong_and_what_to_do(database: Path, era: str) -> None:
    said: list[str] = []
    async with two_in_a_room(database, era) as (alice, _bob):
        for tool, arguments, _ in REFUSED_CALLS:
            with pytest.raises(Refused) as refused:
                await alice.call(tool, **arguments)
            said.append(refused.value.text)

    unlike = [text for text, (_, _, expected) in zip(said, REFUSED_CALLS, strict=True) if not re.search(expected, text)]
    assert not unlike
    assert not [text for text in said if "pydantic" in text or "Error executing" in text]


async def test_several_rooms_must_be_told_apart(database: Path, era: str) -> None:
    async with two_in_a_room(database, era) as (alice, bob):
        second = await alice.call("join", room="cellar", name="alice")
        with pytest.raises(Refused, match=r"joined several rooms \(cellar, hall\).*Give the room"):
            await alice.call("send", text="x")
        sent = await alice.call("send", text="x", room="hall")
        with pytest.raises(Refused, match=r"Nobody would get"):
            await alice.call("send", text="x", room="cellar")
        await bob.call("leave")

    assert second["rooms"] == ["cellar", "hall"]
    assert list(sent["to"]) == ["bob"]


@pytest.mark.fault("F44")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (r'"a\ud800b"', "half of a surrogate pair"),
        ("[" * 300 + "]" * 300, "nests its values too deep"),
        ('{"method":[' * 20_000 + "]}" * 20_000, "nests its values too deep"),
        ("9" * 5_000, "no plain JSON"),
    ],
    ids=["half a character", "nested", "nested deep", "a long number"],
)
@pytest.mark.parametrize("order", [("jsonrpc", "id", "method", "params"), ("method", "params", "jsonrpc", "id")])
async def test_a_call_that_the_sdk_s_parser_does_not_take_is_refused_with_the_reason(
    database: Path, value: str, why: str, order: Sequence[str]
) -> None:
    """It answers nothing to such a line, and a harness would wait for its time-out."""
    members = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "send", "arguments": {"text": "VALUE", "id": 7}},
    }
    request = {name: members[name] for name in order}
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "x", "version": "0"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request,
    ]
    wire = "".join(json.dumps(line) + "\n" for line in lines).replace('"VALUE"', value)
    command = [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(database)]
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(wire.encode())
        with anyio.fail_after(20):
            answers = b""
            while b'"id":2' not in answers.replace(b" ", b""):
                answers += await process.stdout.receive()
        await process.stdin.aclose()

    answer = next(json.loads(line) for line in answers.splitlines() if json.loads(line).get("id") == 2)
    assert why in answer["error"]["message"]


async def test_the_tools_are_announced_so_that_both_harnesses_run_them_unasked(database: Path, era: str) -> None:
    async with running_server(database, era=era) as server:
        tools = (await server.client.list_tools()).tools

    assert [tool.name for tool in tools] == ["join", "send", "rename", "leave"]
    for tool in tools:
        assert tool.title
        assert tool.meta == {"anthropic/alwaysLoad": True}
        assert tool.annotations is not None
        assert tool.annotations.destructive_hint is False
        assert tool.annotations.open_world_hint is False


def test_what_every_session_pays_for_stays_within_its_budget() -> None:
    shown = [
        {"name": tool["name"], "description": tool["description"], "inputSchema": tool["schema"]} for tool in TOOLS
    ]

    assert len(json.dumps(shown, ensure_ascii=False)) + len(INSTRUCTIONS) <= BUDGET_CHARACTERS
    assert max(len(text) for text in (INSTRUCTIONS, *(tool["description"] for tool in TOOLS))) <= LONGEST_CHARACTERS


def test_the_instructions_teach_authority_and_the_invitation() -> None:
    """Ours: what a newcomer and a peer's text may do."""
    for needed in ("not from your user", "can't approve", "purpose", "your role", "join(room, name)", "first ask"):
        assert needed in INSTRUCTIONS


@pytest.mark.fault("F3")
async def test_a_role_is_offline_once_its_harness_died_though_its_server_lives_on(
    database: Path, tmp_path: Path
) -> None:
    """The harness is a process of its own; another process keeps the server's pipes open."""
    harness = tmp_path / "claude"
    harness.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:])\n"
        "print(server.pid, file=sys.stderr, flush=True)\n"
        "server.wait()\n"
    )
    harness.chmod(0o700)
    home = tmp_path
    server = [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(database)]
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "claude-code", "version": "0"},
        },
    }
    join = {"name": "join", "arguments": {"room": "hall", "name": "bob"}}
    lines = [
        initialize,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": join},
    ]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "CLAUDECODE": "1"}
    # A name that is no launcher's: the harness is the nearest program above its server.
    interpreter = tmp_path / "harness"
    interpreter.symlink_to(Path(sys.executable).resolve())
    async with await anyio.open_process(
        [str(interpreter), str(harness), *server], env=environment, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with anyio.fail_after(30):
            server_pid = int((await process.stderr.receive()).split()[0])
            await process.stdin.send("".join(json.dumps(line) + "\n" for line in lines).encode())
            answers = b""
            while b'"id":2' not in answers.replace(b" ", b""):
                answers += await process.stdout.receive()
            async with running_server(database) as alice:
                joined = await alice.call("join", room="hall", name="alice")
                process.kill()
                await process.wait()
                after = await alice.call("join", room="hall", name="alice")
                sent = await alice.call("send", text="are you there")
        os.kill(server_pid, 0)  # the server itself lives on: its pipes are open
        os.kill(server_pid, signal.SIGTERM)

    assert joined["registered_roles"] == ["bob", "alice"]
    assert after["registered_roles"] == ["alice"]
    assert sent["to"]["bob"]["waiter"].startswith("offline since")
