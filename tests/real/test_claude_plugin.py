"""The plugin in the real Claude Code: its monitor is armed without the model, in the terminal program only.

The skill is tried in both harnesses, as they find it.
"""

import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from fakes.messages_api import MessagesApi
from fakes.messages_script import Rule, call, result_of, shown
from fakes.messages_shown import ModelRequest
from fakes.responses_api import ResponsesApi
from harness_adapters.installation.claude_plugin import planned_install, plugin_folder
from harness_adapters.installation.client import SERVER_NAME, Account, own_registration
from harness_adapters.installation.skill import PACKAGED, planned_copy, skill_files
from tests.another_session import ROOM, ChannelView, open_view
from tests.real.agent_channel import (
    CLAUDE,
    JOIN,
    PEER,
    address_of,
    default_database,
    has_shown,
    is_notice,
    monitor_command,
    shown_texts,
    streamer_of,
)
from tests.real.claude_rig import ClaudeWorld, arm_monitor, joining, look_until, offline_claude
from tests.real.codex_home import CodexHome, command_line
from tests.real.codex_rig import app_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

WITHIN_S = 100  # of one test, on a machine where several run side by side

OWN_SERVER = own_registration(None)
PERMISSION_RULE = f"mcp__plugin_{SERVER_NAME}_{SERVER_NAME}"
JOIN_TOOL, SEND_TOOL = f"{PERMISSION_RULE}__join", f"{PERMISSION_RULE}__send"
JOINING = {"room": ROOM, "name": CLAUDE}

STILL_HERE = "tell them that you are here"
READ = "read how that is done"
SKILL_TITLE = "# Talking to other agents with agent-channel"
ARM_TOO = "arm your own Monitor too"


def answer_of(request: ModelRequest) -> dict[str, object]:
    """What a tool of ours answered the model."""
    (result,) = request.newest_results
    assert not result.is_error, result.text
    answer: dict[str, object] = json.loads(result.text)
    return answer


async def agent_channel(world: ClaudeWorld, *arguments: str) -> None:
    """Run a command of ours as the world's person does; `claude` is on PATH."""
    command = [sys.executable, "-I", "-m", "harness_adapters.cli", *arguments]
    path = f"{world.binary.parent}:{world.environment['PATH']}"
    await anyio.run_process(command, cwd=world.work, env=world.environment | {"PATH": path})


def running(world: ClaudeWorld, module: str) -> list[psutil.Process]:
    """The processes of a world that run a module of ours."""
    return [process for process in world.processes() if module in command_line(process)]


@asynccontextmanager
async def claude_with_plugin(*rules: Rule) -> AsyncIterator[tuple[MessagesApi, ClaudeWorld, ChannelView]]:
    """A world whose Claude Code finds the plugin among its skills; the rules are those that the docs give."""
    allow = [PERMISSION_RULE, f"Bash({monitor_command()})"]
    async with offline_claude(*rules, allow=allow, within_s=WITHIN_S) as (api, world):
        account = Account(world.home, {})
        for change in (planned_copy(skill_files(account)["claude-code"]), planned_install(account, OWN_SERVER)):
            assert change is not None
            change.apply()
        async with open_view(default_database(world.home)) as channel:
            await channel.session(PEER).join(PEER)
            yield api, world, channel


@pytest.mark.fault("F1")
async def test_the_terminal_arms_it_unasked_and_it_lives_through_a_kill_and_a_new_conversation():
    """Messages arrive after `join` alone. A SIGTERM ends it for good: then the next answer tells how to go on."""
    rules = [
        Rule(shown(JOIN), call(JOIN_TOOL, JOINING)),
        *joining(STILL_HERE, SEND_TOOL, {"text": "here", "to": PEER}),
    ]
    async with claude_with_plugin(*rules) as (api, world, channel), world.terminal_session() as session:
        peer = channel.session(PEER)
        address = address_of(session)
        armed = await streamer_of(channel, address)
        await session.say(JOIN)
        joined = answer_of(await api.wait_for(result_of(JOIN_TOOL)))
        await peer.send("after the join", CLAUDE)
        await channel.until_states(["seen"], to=CLAUDE)

        former = (await channel.until_waiter(address, lambda _: True))["process"]
        armed.kill()
        await channel.until_waiter(address, lambda row: row["process"] != former)
        await peer.send("after the kill", CLAUDE)
        await channel.until_states(["seen"] * 2, to=CLAUDE)
        await session.wait_until_idle()

        session_id = session.registry()["sessionId"]
        await session.clear()
        await look_until(lambda: session.registry()["sessionId"] != session_id)
        await peer.send("after a new conversation", CLAUDE)
        await api.wait_for(has_shown("after a new conversation"))
        await channel.until_states(["seen"] * 3, to=CLAUDE)
        await session.wait_until_idle()

        (await streamer_of(channel, address)).send_signal(signal.SIGTERM)
        await api.wait_for(shown("stream ended"))
        await peer.send("after its end", CLAUDE)
        await session.wait_until_idle()
        await session.say(STILL_HERE)
        deaf = answer_of(await api.wait_for(result_of(SEND_TOOL)))
        await api.wait_for(has_shown("after its end"))
        await channel.until_states(["seen"] * 4, to=CLAUDE)
        texts = shown_texts(api.notifications())
    assert joined["waiter"] == "active"
    assert "command" not in joined
    assert (deaf["waiter"], deaf["command"]) == ("offline", monitor_command())
    assert texts == ["after the join", "after the kill", "after a new conversation", "after its end"]


@pytest.mark.fault("F54")
async def test_of_the_plugins_monitor_and_the_models_own_one_prints_and_the_other_says_so_and_ends():
    """Installed as a person does, so the server is registered too: Claude Code starts one of the two (2.1.332).

    Claude Code killed, nothing of it lives on.
    """
    join = f"mcp__{SERVER_NAME}__join"
    rules = [Rule(shown(JOIN), call(join, JOINING)), Rule(shown(ARM_TOO), arm_monitor(monitor_command()))]
    async with claude_with_plugin(*rules) as (api, world, channel):
        await agent_channel(world, "install", "--client=claude-code", "--plugin", "--yes")
        async with world.terminal_session("--allowedTools", join) as session:
            armed = await streamer_of(channel, address_of(session))
            await session.say(JOIN)
            joined = answer_of(await api.wait_for(result_of(join)))
            await session.wait_until_idle()
            await session.say(ARM_TOO)
            ended = await api.wait_for(lambda request: any(each.status for each in request.newest_notifications))
            await channel.session(PEER).send("only once", CLAUDE)
            await channel.until_states(["seen"], to=CLAUDE)
            still = await streamer_of(channel, address_of(session))
            servers = running(world, "harness_adapters.mcp_server")
            session.kill()
            await look_until(lambda: not running(world, "harness_adapters.cli"))
        await agent_channel(world, "uninstall", "--yes")
        left = await world.run_claude("plugin", "list")
    said = [each.event for each in ended.notifications if is_notice(each)]
    assert said == ["agent-channel: another streamer serves this session already, so this one ends. Nothing is lost."]
    assert joined["waiter"] == "active"
    assert armed == still
    assert shown_texts(api.notifications()) == ["only once"]
    assert len(servers) == 1
    assert SERVER_NAME.encode() not in left.stdout


async def test_print_mode_does_not_arm_it_and_join_goes_on_returning_the_command():
    """The skill is there once, and its text reaches a model that asks for it; the plugin has no fault."""
    rules = [*joining(JOIN, JOIN_TOOL, JOINING), Rule(shown(READ), call("Skill", {"skill": SERVER_NAME}))]
    async with claude_with_plugin(*rules) as (api, world, channel):
        async with world.stream_session() as session:
            await session.say(JOIN)
            joined = answer_of(await api.wait_for(result_of(JOIN_TOOL)))
            await channel.session(PEER).send("hello", CLAUDE)
            await channel.until_states(["seen"], to=CLAUDE)
            await session.say(READ)
            await api.wait_for(shown(SKILL_TITLE))
            begun = await session.events.wait_for(lambda event: event.get("subtype") == "init")
            validated = await world.run_claude(
                "plugin", "validate", "--strict", str(plugin_folder(Account(world.home, {})))
            )
    assert (joined["waiter"], joined["command"]) == ("offline", monitor_command())
    assert [name for name in begun["skills"] if SERVER_NAME in name] == [SERVER_NAME]
    assert [each["source"] for each in begun["plugins"] if each["name"] == SERVER_NAME] == [f"{SERVER_NAME}@skills-dir"]
    assert validated.returncode == 0, validated.stdout


async def test_codex_finds_the_skill_and_shows_its_model_the_description(codex: CodexHome, responses_api: ResponsesApi):
    change = planned_copy(skill_files(Account(codex.home, {}))["codex"])
    assert change is not None
    change.apply()
    with anyio.fail_after(WITHIN_S):
        async with app_server(codex) as owner:
            listed = await owner.request("skills/list", cwds=[str(codex.project)])
            thread = await owner.start_thread(codex.project)
            await owner.run_turn(thread, "hello")
            request = await responses_api.next_request()
    (of_project,) = listed["data"]
    (found,) = [each for each in of_project["skills"] if each["name"] == SERVER_NAME]
    assert of_project["errors"] == []
    assert found["enabled"]
    assert Path(found["path"]).read_text("utf-8") == PACKAGED.read_text("utf-8")
    assert found["description"] in json.dumps(request.body, ensure_ascii=False)
