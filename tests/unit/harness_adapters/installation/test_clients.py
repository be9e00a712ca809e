"""Which clients an account has, where each keeps its servers, and what is read there."""

import json
from pathlib import Path

import pytest
import tomlkit

from harness_adapters.installation.client import (
    Account,
    CantChange,
    CantRead,
    Registration,
    cache_around,
    own_registration,
    version_of,
)
from harness_adapters.installation.clients import CLIENTS, all_clients
from tests.unit.harness_adapters.installation.golden import WANTED, account_at, client_of

PLACES = {
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "antigravity": ".gemini/config/mcp_config.json",
    "opencode": ".config/opencode/opencode.json",
}


@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_client_is_found_by_its_folder(tmp_path: Path, name: str, place: str) -> None:
    client = client_of(name, account_at(tmp_path))
    assert client.path == tmp_path / place
    assert not client.is_found()
    client.path.parent.mkdir(parents=True)
    assert client.is_found()
    assert client.registered() is None


@pytest.mark.parametrize(
    ("name", "program"),
    [("claude-code", "claude"), ("codex", "codex"), ("cursor", "cursor-agent"), ("antigravity", "agy")],
)
def test_a_client_is_found_by_its_program(tmp_path: Path, name: str, program: str) -> None:
    (tmp_path / program).write_text("#!/bin/sh\necho 1.2.3\n")
    (tmp_path / program).chmod(0o755)
    account = Account(tmp_path, {"PATH": str(tmp_path)})
    client = CLIENTS[name](account)
    assert client.is_found()
    assert client.program() == tmp_path / program
    assert version_of(tmp_path / program, account).text == "1.2.3"


OURS = {"command": "/opt/agent-channel-mcp", "args": []}
OURS_IN_OPENCODE = {"type": "local", "command": ["/opt/agent-channel-mcp"]}

WRONG: tuple[object, ...] = (5, 1.5, True, "x", ["x", 5], {"x": 5}, [[]])
"""What a setting may be instead of what it should be."""


def written(name: str, entry: object) -> str:
    """A configuration whose entry of ours is this."""
    if name == "codex":
        return tomlkit.dumps({"mcp_servers": {"agent-channel": entry}})
    return json.dumps({"mcp" if name == "opencode" else "mcpServers": {"agent-channel": entry}})


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("field", ["command", "args", "env", "environment", "env_vars", "enabled", ""])
def test_an_entry_of_a_wrong_kind_is_said_and_stops_nothing(tmp_path: Path, name: str, field: str) -> None:
    """Each is read as some registration, or refused with a reason: an install goes on with the other clients."""
    account = account_at(tmp_path)
    path = tmp_path / {**PLACES, "claude-code": ".claude.json"}[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = OURS_IN_OPENCODE if name == "opencode" else OURS
    for wrong in WRONG:
        path.write_text(written(name, {**ours, field: wrong} if field else wrong))
        client = CLIENTS[name](account)
        for what in (client.registered, lambda: client.planned_install(WANTED), client.planned_removal):  # noqa: B023
            try:
                what()
            except (CantRead, CantChange) as error:
                assert str(error)


@pytest.mark.parametrize("name", ["claude-code", "codex", "cursor"])
def test_arguments_that_are_no_list_are_not_read_as_some(tmp_path: Path, name: str) -> None:
    path = tmp_path / {**PLACES, "claude-code": ".claude.json"}[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(name, {**OURS, "args": "--db"}))
    with pytest.raises(CantRead, match="args of what it registers as agent-channel is of a wrong kind"):
        CLIENTS[name](account_at(tmp_path)).registered()


def test_a_program_that_fails_has_no_version_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "codex").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (tmp_path / "codex").chmod(0o755)
    assert version_of(tmp_path / "codex", account_at(tmp_path)) == (None, "broken")
    assert version_of(tmp_path / "none", account_at(tmp_path)).text is None


@pytest.mark.parametrize(
    ("variable", "name", "place"),
    [("CODEX_HOME", "codex", "config.toml"), ("XDG_CONFIG_HOME", "opencode", "opencode/opencode.json")],
)
def test_a_variable_moves_a_configuration(tmp_path: Path, variable: str, name: str, place: str) -> None:
    account = Account(tmp_path, {variable: str(tmp_path / "moved")})
    assert client_of(name, account).path == tmp_path / "moved" / place


def test_opencode_s_file_with_comments_counts_where_it_is_there(tmp_path: Path) -> None:
    client = client_of("opencode", account_at(tmp_path))
    with_comments = client.path.with_suffix(".jsonc")
    with_comments.parent.mkdir(parents=True)
    with_comments.write_text('{"mcp": {"agent-channel": {"type": "local", "command": ["/bin/agent-channel-mcp"]}}}')
    assert client.path == with_comments
    assert client.registered() == Registration("/bin/agent-channel-mcp")


REGISTERED = {
    "codex": """\
[mcp_servers.agent-channel]
command = "/bin/agent-channel-mcp"
args = ["--db=/srv/channel.db"]
env = { LANG = "C.UTF-8" }
env_vars = ["CODEX_HOME", { name = "HOST", source = "local" }]
enabled = false
""",
    "cursor": """\
{"mcpServers": {"agent-channel": {"command": "/bin/agent-channel-mcp", "args": ["--db=/srv/channel.db"],
 "env": {"LANG": "C.UTF-8"}, "disabled": true}}}""",
    "opencode": """\
{"mcp": {"servers": {"agent-channel": {"type": "local", "command": ["/bin/agent-channel-mcp", "--db=/srv/channel.db"],
 "environment": {"LANG": "C.UTF-8"}, "disabled": true}}}}""",
}


@pytest.mark.parametrize(("name", "content"), REGISTERED.items())
def test_what_is_registered_is_read_with_all_that_decides_how_it_is_started(
    tmp_path: Path, name: str, content: str
) -> None:
    client = client_of(name, account_at(tmp_path))
    client.path.parent.mkdir(parents=True)
    client.path.write_text(content)
    registered = client.registered()
    assert registered is not None
    assert registered.words == ("/bin/agent-channel-mcp", "--db=/srv/channel.db")
    assert registered.database == Path("/srv/channel.db")
    assert registered.env == {"LANG": "C.UTF-8"}
    assert registered.env_vars == (("CODEX_HOME", "HOST") if name == "codex" else ())
    assert not registered.enabled
    assert registered.is_agent_channel


def test_a_broken_configuration_that_names_us_is_said_and_one_that_does_not_has_none_of_ours(tmp_path: Path) -> None:
    for client in all_clients(account_at(tmp_path))[1:]:
        path = client_of(client.name, account_at(tmp_path)).path
        path.parent.mkdir(parents=True)
        path.write_text("{[ // agent-channel")
        with pytest.raises(CantRead, match="it is not"):
            client.registered()
        path.write_text("{[ // docs")
        assert client.registered() is None
        path.write_bytes(b"\xff")
        with pytest.raises(CantRead, match="UTF-8"):
            client.registered()


@pytest.mark.fault("F48")
def test_the_command_is_absolute_and_isolated_from_the_folder_it_is_started_in() -> None:
    registration = own_registration(Path("/srv/channel.db"))
    assert Path(registration.command).is_absolute()
    assert registration.args == ("-I", "-m", "harness_adapters.mcp_server", "--db", "/srv/channel.db")
    assert registration.is_agent_channel
    assert own_registration(None).database is None


def test_an_installation_in_a_cache_is_told_from_one_that_is_marked_as_one_itself(tmp_path: Path) -> None:
    """uv marks its cache, but also each environment that is there to stay."""
    installation = tmp_path / "cache" / "archive-v0" / "abc"
    installation.mkdir(parents=True)
    (installation / "CACHEDIR.TAG").touch()
    assert cache_around(installation) is None
    (tmp_path / "cache" / "CACHEDIR.TAG").touch()
    assert cache_around(installation) == tmp_path / "cache"
