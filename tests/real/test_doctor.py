"""The doctor among the real harnesses: a sound set-up, a broken configuration, and a message there and back."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from fakes.messages_script import Reply, Rule
from fakes.messages_shown import ModelRequest as ClaudeRequest
from fakes.responses_api import ModelRequest as CodexRequest
from fakes.responses_api import Reply as CodexReply
from fakes.responses_api import ResponsesApi, Say, call_mcp
from harness_adapters.doctor.finding import Level
from harness_adapters.doctor.servers import environment_of
from harness_adapters.doctor.sessions import sessions
from harness_adapters.installation.claude_code import ClaudeCode
from harness_adapters.installation.client import SERVER_NAME, Account, Change, Registration, own_registration
from harness_adapters.installation.codex import codex as codex_client
from harness_adapters.installation.permission_rule import planned_rule
from tests.another_session import ROOM
from tests.doctor_world import AClient, all_found, found, named, surroundings
from tests.real import channel_rig
from tests.real.agent_channel import CLAUDE, JOIN, JOINS_AND_LISTENS, address_of, claude_with_agent_channel, sending
from tests.real.binaries import claude_binary
from tests.real.channel_rig import ChannelRig
from tests.real.claude_rig import offline_claude
from tests.real.codex_home import SYSTEM_PATH, CodexHome, until
from tests.real.codex_rig import app_server
from tests.real.probe_mcp_server import __file__ as probe_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(150)]

LIMIT_S = 120
COMMAND_LINE = [sys.executable, "-I", "-m", "harness_adapters.cli"]
MORE = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "LOGNAME": "me", "SHELL": "/bin/sh", "TZ": "UTC", "USER": "me"}
NOT_PASSED_ON = {"XDG_DATA_HOME": "/nowhere", "ANOTHER": "1"}
OF_CLAUDE_ITSELF = re.compile(r"AI_AGENT|CLAUDE\w*|COREPACK_ENABLE_AUTO_PIN|NoDefaultCurrentDirectoryInExePath")


@pytest.fixture
def account(codex: CodexHome) -> Account:
    """Whose PATH has both harnesses, and whose home has both configurations."""
    programs = codex.home / "bin"
    programs.mkdir()
    (programs / "codex").symlink_to(codex.binary)
    (programs / "claude").symlink_to(claude_binary())
    more = {"PATH": f"{programs}{os.pathsep}{SYSTEM_PATH}", "DISABLE_AUTOUPDATER": "1"}
    return Account(codex.home, {**codex.environment(), **more})


def apply(change: Change | None) -> None:
    assert change is not None
    change.apply()


async def doctor(variables: Mapping[str, str], folder: Path, *arguments: str) -> tuple[int, Any]:
    """Its exit status, and what it prints as JSON."""
    command = [*COMMAND_LINE, *arguments]
    done = await anyio.run_process(command, env=variables, cwd=folder, check=False, stderr=None)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.fault("F48")
async def test_a_sound_set_up_passes_from_whatever_folder(account: Account, tmp_path: Path):
    """The folder holds what our own modules would be taken from, if a command were not isolated."""
    (tmp_path / "channel").mkdir()
    (tmp_path / "channel" / "__init__.py").write_text("raise SystemExit('not this one')")
    with anyio.fail_after(LIMIT_S):
        apply(codex_client(account).planned_install(own_registration(None)))
        apply(ClaudeCode(account).planned_install(own_registration(None)))
        apply(planned_rule(account, None))
        status, answer = await doctor(account.variables, tmp_path, "doctor", "--json")
    not_passed = [each for each in answer["findings"] if each["level"] != "pass"]
    # Which SQLite this Python has, and what other tests leave running for a moment, is nothing of the set-up's.
    assert [each for each in not_passed if "SQLite" not in each["proved"] and each["subject"] != "process"] == []
    assert status == 0
    proved = "\n".join(each["proved"] for each in answer["findings"])
    for words in (
        "and says codex-cli ",
        "(Claude Code)",
        "answered thread/queue/list",
        "was started as Codex starts it from this shell, listed its tools after ",
        "was started as Claude Code starts it from this shell, listed its tools after ",
        f"Claude Code and Codex and your commands use the same channel: {account.home}/.agent-channel/channel.db",
        "Claude Code runs the streamer without asking",
    ):
        assert words in proved


async def test_a_broken_config_toml_is_named_with_the_line(account: Account, codex: CodexHome):
    config = codex.codex_home / "config.toml"
    apply(codex_client(account).planned_install(own_registration(None)))
    config.write_text("broken = [\n" + config.read_text())
    around = surroundings(codex.home, clients=[codex_client(account)], variables=account.variables)
    with anyio.fail_after(LIMIT_S):
        examined = await all_found(around)
    of_codex = [each.finding for each in examined if each.subject == "codex"]
    fault = named(of_codex, Level.FAIL, "Codex can't read its configuration: ")
    assert f"{config}:" in fault.proved
    named([each.finding for each in examined if each.subject == "server"], Level.FAIL, f"Codex: {config}: ")


async def test_a_server_of_one_project_is_told_from_none(account: Account, codex: CodexHome):
    around = surroundings(codex.home, clients=[ClaudeCode(account)], variables=account.variables)
    command = [str(claude_binary()), "mcp", "add", "--scope", "local", SERVER_NAME, "--", *own_registration(None).words]
    with anyio.fail_after(LIMIT_S):
        await anyio.run_process(command, env=account.variables, cwd=around.folder)
        named(
            await found(around, "server"),
            Level.WARN,
            f"Claude Code knows agent-channel in {around.folder} only (Scope: ",
        )


@pytest.mark.fault("F48")
async def test_a_server_is_given_what_codex_gives_it(codex: CodexHome, responses_api: ResponsesApi):
    variables = {**codex.environment(), **MORE, **NOT_PASSED_ON, "CODEX_HOME": str(codex.codex_home)}
    codex.environment = lambda: variables
    codex.configure(responses_api.url, {"probe": codex.probe(env={"EXTRA": "1"}, env_vars=["CODEX_HOME", "NOT_SET"])})
    with anyio.fail_after(LIMIT_S):
        async with app_server(codex) as owner:
            await owner.start_thread(codex.project)
            await until(lambda: bool(codex.probe_events("started")))
    [started] = codex.probe_events("started")
    registration = Registration("probe", env={"EXTRA": "1"}, env_vars=("CODEX_HOME", "NOT_SET"))
    client = AClient(registration)
    ours = environment_of(client, registration, surroundings(codex.home, variables=variables))
    given = started["environ"]
    assert given.pop("PATH").endswith(ours.pop("PATH"))  # Codex puts folders of its own in front
    assert given == ours


@pytest.mark.fault("F48")
async def test_a_server_is_given_what_claude_code_gives_it(tmp_path: Path):
    log = tmp_path / "probe.jsonl"
    registration = Registration(sys.executable, ("-I", probe_server, str(log)), {"EXTRA": "1"})
    server = {"command": registration.command, "args": registration.args, "env": registration.env}
    async with offline_claude(mcp_servers={"probe": server}, variables=NOT_PASSED_ON) as (_, world):
        async with world.stream_session():
            await until(lambda: log.exists() and log.read_text().endswith("\n"))
        around = surroundings(world.work, variables=world.environment)
        ours = environment_of(AClient(registration, "claude-code"), registration, around)
    given = json.loads(log.read_text().splitlines()[0])["environ"]
    assert {name: given.get(name) for name in ours} == ours
    assert [name for name in given.keys() - ours.keys() if not OF_CLAUDE_ITSELF.fullmatch(name)] == []


def answer_to(text: str) -> tuple[str, str]:
    """What a model makes of a probe: the answer, and whom it is for."""
    [first], [last] = re.findall(r"FIRST (\w+)", text), re.findall(r"LAST (\w+)", text)
    return f"{first} {last}", re.findall(r"`(doctor-\w+)`", text)[0]


def claude_model(request: ClaudeRequest) -> Reply:
    return sending(*answer_to("\n".join(each.event or "" for each in request.notifications)))


def shows_the_end(request: ClaudeRequest) -> bool:
    return any("|LAST " in (each.event or "") for each in request.newest_notifications)


def codex_model(rig: ChannelRig, request: CodexRequest) -> CodexReply:
    if "agent-channel doctor" not in request.last_user_text:
        return rig.script(request)
    if request.step:
        return Say("answered")
    text, to = answer_to(request.last_user_text)
    return call_mcp(channel_rig.SERVER, "send", text=text, to=to)


async def test_a_message_goes_through_a_monitor_and_through_a_thread_and_answers_come_back(
    codex: CodexHome, responses_api: ResponsesApi
):
    rig = ChannelRig(codex, responses_api)
    responses_api.script = lambda request: codex_model(rig, request)
    rules = [*JOINS_AND_LISTENS, Rule(shows_the_end, claude_model)]
    probing = ("--db", str(rig.database), "doctor", "--probe", "--json", "--room", ROOM, CLAUDE, "codex")
    async with claude_with_agent_channel(*rules, database=rig.database, within_s=LIMIT_S) as (_, world, channel):
        async with world.stream_session() as claude, app_server(codex) as owner:
            await claude.say(JOIN)
            await channel.until_active(address_of(claude))
            await owner.run_turn(await owner.start_thread(codex.project), channel_rig.JOIN)
            status, answer = await doctor(codex.environment(), codex.project, *probing)
            roles = await channel.roles()
            membership, leases = channel.channel.membership, channel.channel.leases
            seen = [each async for each in sessions(membership, leases, codex.codex_home)]
    assert [(each["level"], each["to_do"]) for each in answer["findings"]] == [("pass", "")] * 2, answer
    assert status == 0
    for each in answer["findings"]:
        assert each["times_ms"].keys() == {"handed_over", "accepted", "seen", "answered", "heard"}
        assert "UTF-16 units) and answered; the answer came back here" in each["proved"]
    assert set(roles) == {"peer", CLAUDE, "codex"}
    of_both = {each.proved.split()[0]: each.level for each in seen if not each.proved.startswith("peer ")}
    assert of_both == {CLAUDE: Level.PASS, "codex": Level.PASS}
