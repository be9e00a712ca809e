"""Each registered server, started as its harness starts it, up to the tools and the file that it opens."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import anyio

from harness_adapters.doctor.finding import Finding, failed, passed, warned
from harness_adapters.doctor.output_of import output_of
from harness_adapters.doctor.started_server import ServerFailed, StartedServer, start_server
from harness_adapters.doctor.surroundings import Surroundings
from harness_adapters.installation.client import SERVER_NAME, CantRead, Client, Registration
from harness_adapters.installation.codex import codex

START_S_MAX = 30.0
"""What both harnesses give a server before they go on without it (Codex 0.171.0, Claude Code 2.1.332)."""

CODEX_PASSES = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "__CF_USER_TEXT_ENCODING",
)
"""All of its own environment that Codex 0.171.0 gives a server, where its configuration names no more."""

OUR_TOOLS = frozenset({"join", "send", "rename", "leave"})


class Started(NamedTuple):
    """A server that answered. `database`: the file that it had open; `python`: the program that runs it."""

    client: Client
    registration: Registration
    database: Path
    python: str


async def registered_servers(around: Surroundings, started: list[Started]) -> AsyncIterator[Finding]:
    """A finding for each client that is found; what started is added to `started`."""
    for client in around.clients:
        if not client.is_found():
            continue
        try:
            registration = client.registered()
        except CantRead as error:
            yield failed(f"{client.title}: {error}", f"Mend {client.place}.")
            continue
        if registration is None:
            yield (
                _in_other_codex_home(around, client) or await _in_other_scope(around, client) or _not_registered(client)
            )
        elif not registration.enabled:
            yield failed(
                f"{client.title}: agent-channel is registered in {client.place}, but disabled", "Enable it there."
            )
        else:
            finding, server = await _start(around, client, registration)
            yield finding
            if server is not None:
                started.append(server)
                if not Path(registration.command).is_absolute():
                    yield _found_by_path(around, server)


def environment_of(client: Client, registration: Registration, around: Surroundings) -> dict[str, str]:
    """All that a server is given, where the harness itself was started with the doctor's environment."""
    own = around.variables
    if client.name == "codex":
        passed_on = {name: own[name] for name in (*CODEX_PASSES, *registration.env_vars) if name in own}
        return {**passed_on, **registration.env}
    if client.name == "claude-code":
        return {**own, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(around.folder), **registration.env}
    return {**own, **registration.env}


async def _start(around: Surroundings, client: Client, registration: Registration) -> tuple[Finding, Started | None]:
    environment = environment_of(client, registration, around)
    shown = " ".join(registration.words)
    again = f"Register it anew: agent-channel install --client {client.name}"
    if (missing := _missing(registration.command, environment)) is not None:
        return failed(f"{client.title} can't start our server: {missing}", again), None
    began_s = around.clock.monotonic()
    try:
        async with start_server(registration.words, environment, around.folder) as server:
            with anyio.fail_after(START_S_MAX):
                tools = await server.tools()
                took_s = around.clock.monotonic() - began_s
                if not tools >= OUR_TOOLS:
                    return failed(f"{client.title} starts {shown}, which is not our server", again), None
                return await _asked(server, client, registration, took_s)
    except ServerFailed as error:
        return failed(f"{client.title} starts {shown}: {error}", again), None
    except TimeoutError:
        return failed(f"{client.title} starts {shown}: no answer within {START_S_MAX:g} s", again), None


async def _asked(
    server: StartedServer, client: Client, registration: Registration, took_s: float
) -> tuple[Finding, Started | None]:
    refusal = await server.refusal_of_leave()
    opened = server.opened_databases()
    if len(opened) != 1:
        proved = f"{client.title}: our server starts, but is not seen to have a channel open; it says: {refusal}"
        return failed(proved, "Mend what it says; the lines about the file say more."), None
    [(database, python)] = opened.items()
    proved = (
        f"{client.title}: what {client.place} names was started as {client.title} starts it from this shell, "
        f"listed its tools after {took_s:.1f} s and has {database} open"
    )
    return passed(proved), Started(client, registration, database, python)


def _missing(command: str, environment: Mapping[str, str]) -> str | None:
    """Why there is no such program where the harness looks; None: there is one."""
    if shutil.which(command, path=environment.get("PATH", os.defpath)) is not None:
        return None
    if os.path.dirname(command):  # noqa: PTH120 (a bare name is what is asked for)
        return f"{command} is not there, or can't be run"
    return f"{command!r} is in no folder of the PATH that the server gets ({environment.get('PATH', 'not set')})"


def _found_by_path(around: Surroundings, server: Started) -> Finding:
    command = server.registration.command
    where = shutil.which(command, path=around.variables.get("PATH", os.defpath))
    return warned(
        f"{server.client.title} finds {command!r} by PATH ({where}): started elsewhere, it may find another, or none",
        f"Register its absolute path: agent-channel install --client {server.client.name}",
    )


def _in_other_codex_home(around: Surroundings, client: Client) -> Finding | None:
    """Codex reads the configuration of one CODEX_HOME only."""
    if client.name != "codex" or "CODEX_HOME" not in around.variables:
        return None
    rest = {name: value for name, value in around.variables.items() if name != "CODEX_HOME"}
    usual = codex(replace(around.account, variables=rest))
    try:
        if usual.registered() is None:
            return None
    except CantRead:
        return None
    return failed(
        f"Codex: CODEX_HOME is {around.codex_home}, and agent-channel is not registered there, but in {usual.place}",
        "Start Codex without CODEX_HOME, or register it there too: agent-channel install --client codex",
    )


async def _in_other_scope(around: Surroundings, client: Client) -> Finding | None:
    """Claude Code also has servers of one project."""
    if client.name != "claude-code" or (claude := around.claude) is None:
        return None
    ran = await output_of([claude, "mcp", "get", SERVER_NAME], around)
    scope = next((line.strip() for line in ran.output.splitlines() if "Scope:" in line), None)
    if ran.status != 0 or scope is None:
        return None
    return warned(
        f"Claude Code knows agent-channel in {around.folder} only ({scope}); the doctor did not start that one",
        "agent-channel install --client claude-code registers it for every folder.",
    )


def _not_registered(client: Client) -> Finding:
    if client.name in ("codex", "claude-code"):
        return failed(
            f"{client.title}: agent-channel is not registered in {client.place}",
            f"agent-channel install --client {client.name}",
        )
    return warned(
        f"{client.title}: agent-channel is not registered in {client.place}",
        f"Nothing, if it is not to take part; else: agent-channel install --client {client.name}",
    )
