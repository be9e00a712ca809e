"""Smoke tests of the rig: the real Claude Code, offline, shows its scripted model what the tests rely on."""

import json
import sys
from pathlib import Path

import pytest

from fakes.messages_api import MessagesApi
from fakes.messages_script import Predicate, Rule, call, result_of, say, shown
from tests.real.claude_rig import ClaudeWorld, Session, arm_monitor, joining, look_until, offline_claude

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

SERVER = [sys.executable, str(Path(__file__).parent / "echo_mcp_server.py")]
MCP_SERVERS = {"echo": {"command": SERVER[0], "args": SERVER[1:]}}
LINES = "lines.txt"  # in the session's folder; what is appended to it, Monitor's command prints
FOLLOW = f"tail -n +1 -F {LINES}"
ARM = [Rule(shown("arm it"), arm_monitor(FOLLOW)), Rule(result_of("Monitor"), say("armed"))]


def print_lines(world: ClaudeWorld, text: str) -> None:
    """Have the Monitor print this, which it does at once or as soon as it runs."""
    with (world.work / LINES).open("a", encoding="utf-8") as lines:
        lines.write(text)


def event_is(text: str) -> Predicate:
    return lambda request: any(each.event == text for each in request.newest_notifications)


async def two_events_wake_it(api: MessagesApi, session: Session) -> None:
    """Both are printed into an idle session, and read as the model was shown them."""
    armed = await api.wait_for(result_of("Monitor"))
    assert armed.newest_results[-1].text.startswith("Monitor started")
    await session.wait_until_idle()
    print_lines(session.world, '  one <b> & "two"\nthree  \n')
    first = await api.wait_for(event_is('one <b> & "two"\nthree'))
    await session.wait_until_idle()
    print_lines(session.world, "four\n")
    await api.wait_for(event_is("four"), start=first.number + 1)
    shown_events = [each.event for each in api.notifications(first.session_id)]
    assert shown_events == ['one <b> & "two"\nthree', "four"]
    assert first.session_id == session.registry()["sessionId"]


async def test_a_monitor_line_wakes_an_idle_stream_session():
    async with offline_claude(*ARM, allow=["Bash(tail *)"]) as (api, world), world.stream_session() as session:
        await session.say("arm it")
        await two_events_wake_it(api, session)


async def test_a_monitor_line_wakes_an_idle_terminal_session():
    async with offline_claude(*ARM, allow=["Bash(tail *)"]) as (api, world), world.terminal_session() as session:
        await session.say("arm it")
        await two_events_wake_it(api, session)


async def test_the_command_that_a_tool_answers_is_run_in_monitor_and_its_lines_arrive():
    rules = joining("join it", "mcp__echo__invite", {"command": FOLLOW})
    options = {"allow": ["mcp__echo", f"Bash({FOLLOW})"], "mcp_servers": MCP_SERVERS}
    async with offline_claude(*rules, **options) as (api, world), world.stream_session() as session:
        print_lines(world, "from the start\n")
        await session.say("join it")
        await api.wait_for(event_is("from the start"))


async def test_a_tool_of_an_mcp_server_is_called_in_a_single_shot():
    rules = [Rule(shown("echo it"), call("mcp__echo__echo", {"text": "é"})), Rule(shown("echoed"), say("done"))]
    async with offline_claude(*rules, allow=["mcp__echo"], mcp_servers=MCP_SERVERS) as (api, world):
        completed = await world.run_once("echo it")
        (result,) = (await api.wait_for(result_of("mcp__echo__echo"))).newest_results
    assert json.loads(result.text) == {"echoed": "é"}
    assert (completed.returncode, completed.stdout.decode().strip()) == (0, "done")


async def test_a_server_added_by_command_is_called_in_a_session():
    rules = [Rule(shown("echo it"), call("mcp__echo__echo", {"text": "x"}))]
    async with offline_claude(*rules, allow=["mcp__echo"]) as (api, world):
        added = await world.run_claude("mcp", "add", "-s", "user", "echo", "--", *SERVER)
        assert added.returncode == 0
        async with world.stream_session() as session:
            await session.say("echo it")
            (result,) = (await api.wait_for(result_of("mcp__echo__echo"))).newest_results
    assert json.loads(result.text) == {"echoed": "x"}


async def test_quitting_the_terminal_stops_its_monitor_and_its_registry_file():
    async with offline_claude(*ARM, allow=["Bash(tail *)"]) as (api, world), world.terminal_session() as session:
        await session.say("arm it")
        await api.wait_for(result_of("Monitor"))
        await session.wait_until_idle()
        assert await session.quit() == 0
        assert session.registry() == {}
        assert world.processes() == []


async def test_the_environment_can_move_claude_codes_own_folder(tmp_path: Path):
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    async with offline_claude(variables=moved) as (_, world), world.stream_session() as session:
        await session.say("hello")
        record = await session.wait_for_record(lambda each: each["type"] == "assistant")
        assert record["message"]["content"] == [{"type": "text", "text": "ok"}]
        assert session.transcript_path.is_relative_to(tmp_path)


async def test_a_monitor_orphaned_by_a_kill_is_found_and_ended_with_the_world():
    async with offline_claude(*ARM, allow=["Bash(tail *)"]) as (api, world), world.stream_session() as session:
        await session.say("arm it")
        await api.wait_for(result_of("Monitor"))
        await look_until(lambda: any("tail" in each.name() for each in world.processes()))
        session.kill()
        await session.process.wait()
        orphans = world.processes()
        assert orphans
        await world.end_processes()
        assert not any(each.is_running() and each.status() != "zombie" for each in orphans)
