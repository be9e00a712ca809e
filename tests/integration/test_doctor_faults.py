"""Set-ups that are broken, each in one way: the doctor names the fault and what to do about it."""

import json
import os
import shlex
import socket
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from channel.mounts import Mount
from channel.presence import LEASE_TTL_S
from channel.wakeups import bells_folder
from fakes.clock import FakeClock
from fakes.codex_app_server import CONTROL_SOCKET, write_executable
from harness_adapters.claude.addresses import keyed_address
from harness_adapters.claude.launch_command import launch_command
from harness_adapters.doctor.finding import Level
from harness_adapters.doctor.permission import streamer_permission
from harness_adapters.doctor.servers import Started
from harness_adapters.doctor.sessions import sessions
from harness_adapters.doctor.surroundings import Surroundings
from harness_adapters.installation import claude_plugin, skill
from harness_adapters.installation.client import SERVER_MODULE, Registration, own_registration
from harness_adapters.installation.codex import codex as codex_client
from tests.another_session import ChannelView, open_view
from tests.doctor_world import AClient, found, named, surroundings
from tests.integration.claude_stand_in import claude_stand_in
from tests.integration.codex_world import World
from tests.integration.stuck_deliveries import stuck_deliveries
from tests.small_disk import needs_root, small_disk
from waiters.processes import ProcessIdentity, own_identity

LIMIT_S = 50

pytestmark = pytest.mark.timeout(LIMIT_S + 10)


def stand_in_for_codex(root: Path, *arguments: str) -> None:
    """A `codex` on PATH that has a version, a configuration that it can read, and an app-server."""
    (root / ".codex").mkdir()
    (root / "bin").mkdir()
    server = write_executable(root / "server", *arguments)
    program = root / "bin" / "codex"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo codex-cli 0.1.0;; mcp) echo "[]";; *) exec {server} "$@";; esac\n'
    )
    program.chmod(0o755)


def with_channel(root: Path) -> Surroundings:
    """A file as `join` makes it, empty."""
    around = surroundings(root)
    around.database.parent.mkdir(mode=0o700)
    around.database.touch(mode=0o600)
    return around


async def test_no_codex(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    findings = await found(surroundings(tmp_path, variables={"PATH": "/nowhere"}), "harness")
    named(findings, Level.FAIL, "Codex: no `codex` on PATH (/nowhere), though its folder")
    named(findings, Level.WARN, "Claude Code: no `claude` on PATH (/nowhere) and no")


async def test_a_codex_without_the_queue_api(tmp_path: Path) -> None:
    stand_in_for_codex(tmp_path, "--codex-version", "0.120.0")
    with anyio.fail_after(LIMIT_S):
        findings = await found(surroundings(tmp_path), "codex")
    fault = named(findings, Level.FAIL, "queue API unsupported: this Codex has no thread queue")
    assert "version 0.120.0" in fault.proved


async def test_a_dead_daemon_socket(tmp_path: Path) -> None:
    stand_in_for_codex(tmp_path)
    link, target = tmp_path / ".codex" / CONTROL_SOCKET, tmp_path / "left"
    link.parent.mkdir()
    link.symlink_to(target)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(target))
    with anyio.fail_after(LIMIT_S):
        findings = await found(surroundings(tmp_path), "codex")
    named(findings, Level.WARN, "Codex's daemon left its socket behind")
    assert [each.level for each in findings] == [Level.PASS, Level.PASS, Level.WARN]


@pytest.mark.fault("F48")
async def test_a_command_that_is_not_on_the_path_that_the_server_gets(tmp_path: Path) -> None:
    client = AClient(Registration("agent-channel-mcp", env={"PATH": "/nowhere"}))
    findings = await found(surroundings(tmp_path, clients=[client]), "server")
    named(findings, Level.FAIL, "'agent-channel-mcp' is in no folder of the PATH that the server gets (/nowhere)")


@pytest.mark.fault("F48")
async def test_a_command_that_is_found_by_path_and_a_database_that_each_folder_has_its_own_of(tmp_path: Path) -> None:
    """Here it works; from a desktop, or in another project's folder, it would not."""
    name = Path(sys.executable).name
    client = AClient(Registration(name, ("-I", "-m", SERVER_MODULE, "--db", "channel/channel.db")))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    around = surroundings(tmp_path, clients=[client], variables={"PATH": path})
    with anyio.fail_after(LIMIT_S):
        named(await found(around, "server"), Level.WARN, f"Codex finds {name!r} by PATH ({sys.executable})")
        named(await found(around, "channel"), Level.FAIL, "--db channel/channel.db is another file in each folder")


async def test_a_client_that_knows_no_server_of_ours_or_does_not_start_it(tmp_path: Path) -> None:
    clients = [
        AClient(None),
        AClient(None, "cursor", "Cursor"),
        AClient(replace(own_registration(None), enabled=False), "opencode", "OpenCode"),
        AClient(Registration(sys.executable, ("-c", "import sys; sys.exit('no such option')")), "other", "Other"),
    ]
    with anyio.fail_after(LIMIT_S):
        findings = await found(surroundings(tmp_path, clients=clients), "server")
    named(findings, Level.FAIL, "Codex: agent-channel is not registered in its settings")
    named(findings, Level.WARN, "Cursor: agent-channel is not registered in its settings")
    named(findings, Level.FAIL, "OpenCode: agent-channel is registered in its settings, but disabled")
    named(findings, Level.FAIL, "it ended with status 1: no such option")


async def test_another_codex_home(tmp_path: Path) -> None:
    usual, other = surroundings(tmp_path), {"CODEX_HOME": str(tmp_path / "other")}
    change = codex_client(usual.account).planned_install(own_registration(None))
    assert change is not None
    change.apply()
    around = surroundings(tmp_path, variables=other)
    around = replace(around, clients=[codex_client(around.account)])
    (tmp_path / "other").mkdir()
    findings = await found(around, "server")
    named(
        findings, Level.FAIL, f"CODEX_HOME is {tmp_path / 'other'}, and agent-channel is not registered there, but in"
    )


async def test_two_databases(tmp_path: Path) -> None:
    one, other = tmp_path / "channel" / "channel.db", tmp_path / "other" / "channel.db"
    clients = [AClient(own_registration(one)), AClient(own_registration(other), "claude-code", "Claude Code")]
    around = surroundings(tmp_path, clients=clients)
    with anyio.fail_after(LIMIT_S):
        findings = await found(around, "channel")
    named(
        findings,
        Level.FAIL,
        f"2 databases, and what is said in one is not heard in another: Codex and your commands: {one}",
    )


async def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = with_channel(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: around.database.stat().st_uid + 1)
    findings = await found(around, "file")
    named(findings, Level.FAIL, f"{around.database} belongs to another user")


async def test_a_file_that_others_may_read(tmp_path: Path) -> None:
    around = with_channel(tmp_path)
    around.database.chmod(0o644)
    fault = named(await found(around, "file"), Level.FAIL, f"{around.database} has mode 0644")
    assert fault.to_do == f"chmod 600 {around.database}"


async def test_a_folder_that_others_may_write_in(tmp_path: Path) -> None:
    around = with_channel(tmp_path)
    around.database.parent.chmod(0o777)
    named(
        await found(around, "file"), Level.FAIL, f"{around.database.parent} has mode 0777: others may put a file there"
    )


@needs_root
async def test_a_read_only_folder(tmp_path: Path) -> None:
    with small_disk(tmp_path / "channel") as disk:
        disk.make_read_only()
        findings = await found(surroundings(tmp_path), "file")
        named(findings, Level.FAIL, f"no file can be made in {disk.folder}: Read-only file system")


async def test_a_network_file_system(tmp_path: Path) -> None:
    with_channel(tmp_path)
    around = surroundings(tmp_path, mounts=lambda: [Mount(Path("/"), "ext4"), Mount(tmp_path, "nfs4")])
    named(await found(around, "file"), Level.FAIL, "is a file system that other machines may share (nfs4)")


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({}, Level.FAIL, "has no rule that lets it run the streamer"),
        ({"allow": ["Bash(something else)"]}, Level.FAIL, "has no rule that lets it run the streamer"),
        ({"allow": ["Bash({python} *)"]}, Level.WARN, "which its default mode, `auto`, sets aside"),
        ({"allow": ["Monitor"]}, Level.WARN, "which its default mode, `auto`, sets aside"),
        ({"allow": ["Bash({command})"], "deny": ["Bash({command})"]}, Level.FAIL, "forbids the streamer"),
        ({"allow": ["Bash({command})"], "deny": ["Bash({python}:*)"]}, Level.FAIL, "forbids the streamer: Bash("),
        ({"allow": ["Bash({command})"], "deny": ["Bash(* monitor *)"]}, Level.FAIL, "forbids the streamer: Bash(* mon"),
        ({"allow": ["Bash({command})"], "deny": ["Monitor"]}, Level.FAIL, "forbids the streamer: Monitor"),
        ({"allow": ["Bash({command})"], "ask": ["Bash({command})"]}, Level.FAIL, "asks each time"),
        ({"allow": ["Bash({command})"], "ask": ["Bash"]}, Level.FAIL, "print mode refuses: Bash says so"),
    ],
)
async def test_a_streamer_that_is_not_permitted(
    tmp_path: Path, settings: dict[str, list[str]], level: Level, words: str
) -> None:
    around, command = surroundings(tmp_path), launch_command(tmp_path / "db", tmp_path, None)
    told = {
        kind: [rule.format(command=command, python=sys.executable) for rule in rules]
        for kind, rules in settings.items()
    }
    write_settings(around, told)
    server = Started(AClient(None, "claude-code"), own_registration(tmp_path / "db"), tmp_path / "db", sys.executable)  # type: ignore[arg-type]
    named([each async for each in streamer_permission(around, [server])], level, words)


async def test_a_plugin_runs_the_streamer_too_and_is_of_the_same_channel(tmp_path: Path) -> None:
    around, registration = surroundings(tmp_path), own_registration(tmp_path / "db")
    for each in (
        skill.planned_copy(skill.skill_files(around.account)["claude-code"]),
        claude_plugin.planned_install(around.account, registration),
    ):
        assert each is not None
        each.apply()
    server = Started(AClient(None, "claude-code"), registration, tmp_path / "db", sys.executable)  # type: ignore[arg-type]
    other = server._replace(registration=own_registration(tmp_path / "other"))
    same_channel = [each async for each in streamer_permission(around, [server])]
    assert [each.level for each in same_channel] == [Level.PASS, Level.WARN]
    named(same_channel, Level.WARN, "no rule for the streamer, which print mode needs")
    named(
        [each async for each in streamer_permission(around, [other])],
        Level.FAIL,
        "is of another channel, or of another",
    )


def write_settings(around: Surroundings, permissions: object) -> None:
    around.claude_config.mkdir()
    (around.claude_config / "settings.json").write_text(json.dumps({"permissions": permissions}))


async def test_a_deaf_monitor(tmp_path: Path) -> None:
    async with claude_stand_in(tmp_path) as claude:
        await claude.join("bob")
        await claude.peer.send("do you hear me?", "bob")
        findings = await found(surroundings(tmp_path), "session")
    fault = named(findings, Level.FAIL, "bob in hall is deaf: its Claude Code session lives")
    assert fault.proved.endswith("1 waiting")


async def test_a_stale_lease(tmp_path: Path) -> None:
    async with claude_stand_in(tmp_path) as claude:
        await claude.join("bob")
        await lease_of_dead_process(claude.channel, claude.address)
        findings = await found(surroundings(tmp_path), "session")
    named(findings, Level.FAIL, "bob in hall is deaf")
    named(findings, Level.WARN, "bob in hall: stale lease: its waiter, process")


async def test_a_lease_whose_holder_lives_and_does_not_renew_it(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_view(tmp_path / "channel.db", clock) as view:
        await view.session("ann").join("ann")
        await view.channel.leases.take(keyed_address("ann"), own_identity().to_text(), "")
        clock.advance(LEASE_TTL_S + 1)
        findings = [each async for each in sessions(view.channel.membership, view.channel.leases, tmp_path)]
    fault = named(findings, Level.WARN, "lives, but has not renewed it since")
    assert fault.to_do.startswith(f"Let it go on (kill -CONT {os.getpid()})")


async def test_a_thread_that_codex_does_not_know_and_one_in_another_codex_home(world: World, tmp_path: Path) -> None:
    await world.join()
    await world.session("00000000-0000-7000-8000-000000000000").join("gone")
    channel = world.view.channel
    findings = [each async for each in sessions(channel.membership, channel.leases, tmp_path / "other")]
    named(
        findings,
        Level.FAIL,
        f"gone in hall: its thread in {world.home.path} takes no message: Codex knows no such thread",
    )
    named(findings, Level.WARN, f"codex in hall: its thread is in CODEX_HOME {world.home.path}, and here that is")
    assert any(each.proved.startswith("codex in hall: its thread's queue was read (child, Codex ") for each in findings)


async def lease_of_dead_process(channel: ChannelView, address: str) -> None:
    own = own_identity()
    dead = ProcessIdentity(own.boot_id, own.pid_namespace, own.pid, own.start - 1)
    await channel.channel.leases.take(address, dead.to_text(), "")


async def test_an_uncertain_delivery_and_what_waits(tmp_path: Path) -> None:
    stuck = await stuck_deliveries(tmp_path)
    around = replace(surroundings(tmp_path), database=stuck.database)
    findings = await found(around, "delivery")
    fault = named(findings, Level.WARN, "uncertain: message 2 to builder in hall: ")
    assert fault.to_do.startswith("agent-channel deliveries look 2")
    named(findings, Level.WARN, "pending: 1 message to reviewer in hall, the oldest since 15h")


async def test_a_command_to_paste_takes_a_name_that_a_peer_chose_as_a_name(tmp_path: Path) -> None:
    """A shell would run `$(id)`, which is a legal name of a role."""
    async with open_view(tmp_path / "channel" / "channel.db") as view:
        await view.session("ann").join("ann")
        await view.session("bob").join("$(id);`id`")
        await view.session("ann").send("hello", "$(id);`id`")
        findings = await found(surroundings(tmp_path), "delivery")
    fault = named(findings, Level.WARN, "pending: 1 message to $(id)")
    assert fault.to_do.endswith("--role '$(id);`id`'`.")


@pytest.mark.parametrize("name", ["channel.db", "channel[1].db", "*.db"])
async def test_others_may_read_a_file_of_whatever_name(tmp_path: Path, name: str) -> None:
    around = replace(with_channel(tmp_path), database=tmp_path / "channel" / name)
    around.database.touch()
    around.database.chmod(0o644)
    fault = named(await found(around, "file"), Level.FAIL, "has mode 0644: others can read the messages")
    assert fault.to_do == shlex.join(["chmod", "600", str(around.database)])


async def test_a_file_that_can_not_be_opened(tmp_path: Path) -> None:
    around = with_channel(tmp_path)
    around.database.write_text("no database")
    [finding] = await found(around, "session")
    assert finding.level is Level.FAIL
    assert "can't be used as a channel" in finding.proved


async def test_bells_are_no_files_that_others_could_read(tmp_path: Path) -> None:
    async with open_view(tmp_path / "channel" / "channel.db") as channel:
        bells_folder(channel.channel.database.path).mkdir(exist_ok=True)
        findings = await found(surroundings(tmp_path), "file")
    assert [each for each in findings if each.level is Level.FAIL] == []
