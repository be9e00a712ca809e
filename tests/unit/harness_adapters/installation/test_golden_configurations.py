"""Whatever a configuration looks like: after an install it differs by our entry, after an uninstall by nothing."""

import json
import sys
from pathlib import Path

import pytest

from harness_adapters.installation.client import CantChange, CantRead, Registration
from harness_adapters.installation.file_change import backup_of
from tests.unit.harness_adapters.installation.golden import (
    DATA,
    WANTED,
    Case,
    account_at,
    apply,
    cases,
    client_of,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_CLIENTS = ("codex", "cursor", "opencode")
EDITABLE = cases(*FILE_CLIENTS)

pytestmark = pytest.mark.fault("F47")


@pytest.mark.parametrize("case", EDITABLE, ids=str)
def test_an_install_changes_our_entry_only_and_a_second_one_nothing(tmp_path: Path, case: Case) -> None:
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    apply(lambda: client.planned_install(WANTED))
    assert path.read_bytes() == case.content("installed")
    assert backup_of(path).read_bytes() == case.content("before")
    modified_ns = path.stat().st_mtime_ns
    assert client.planned_install(WANTED) is None
    assert path.stat().st_mtime_ns == modified_ns
    assert sorted(path.parent.iterdir()) == [path, backup_of(path)], "nothing temporary is left"
    registered = client.registered()
    assert registered is not None
    assert registered.words == WANTED.words


@pytest.mark.parametrize("case", EDITABLE, ids=str)
def test_an_uninstall_leaves_every_other_byte_as_it_was(tmp_path: Path, case: Case) -> None:
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    apply(lambda: client.planned_install(WANTED))
    apply(client.planned_removal)
    assert (path.read_bytes() if path.exists() else b"") == case.after_uninstall
    assert client.registered() is None
    assert client.planned_removal() is None


@pytest.mark.parametrize("case", EDITABLE, ids=str)
def test_another_database_or_place_changes_only_the_values_and_leads_back_as_well(tmp_path: Path, case: Case) -> None:
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    apply(lambda: client.planned_install(Registration("/elsewhere/python", (*WANTED.args, "--db", "/a b/c.db"))))
    registered = client.registered()
    assert registered is not None
    assert registered.database == Path("/a b/c.db")
    apply(lambda: client.planned_install(WANTED))
    assert path.read_bytes() == case.content("installed")
    assert backup_of(path).read_bytes() == case.content("before")
    apply(client.planned_removal)
    assert (path.read_bytes() if path.exists() else b"") == case.after_uninstall


@pytest.mark.parametrize("case", cases("codex"), ids=str)
def test_the_installed_configuration_is_toml_that_means_what_it_meant(case: Case) -> None:
    """By another parser than the one that edits it."""
    before, installed = (tomllib.loads(case.content(which).decode("utf-8-sig")) for which in ("before", "installed"))
    servers = installed.pop("mcp_servers")
    ours = servers.pop("agent-channel")
    others = before.pop("mcp_servers", {})
    settings = others.pop("agent-channel", {})
    assert (installed, servers) == (before, others)
    assert {"command": ours["command"], "args": ours["args"]} == {"command": WANTED.command, "args": list(WANTED.args)}
    assert "CODEX_HOME" in ours["env_vars"]
    for name in settings.keys() - {"command", "args", "env_vars"}:
        assert ours[name] == settings[name]


@pytest.mark.parametrize("case", cases("codex"), ids=str)
def test_what_was_added_below_ours_since_stays(tmp_path: Path, case: Case) -> None:
    """Codex and its user go on writing to the file."""
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    apply(lambda: client.planned_install(WANTED))
    added = b"\n# a comment of its own\n[later]\nkey = 1\n"
    path.write_bytes(path.read_bytes() + added)
    apply(client.planned_removal)
    left = path.read_bytes()
    assert left.endswith(added.lstrip() if case.after_uninstall == b"" else added)
    assert left.removesuffix(added).rstrip() == case.after_uninstall.rstrip()


@pytest.mark.parametrize("case", cases("cursor", "opencode"), ids=str)
def test_what_was_added_beside_ours_since_stays(tmp_path: Path, case: Case) -> None:
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    apply(lambda: client.planned_install(WANTED))
    path.write_bytes(path.read_bytes().replace(b"{", b'{"later": [1],', 1))
    apply(client.planned_removal)
    left = json.loads(path.read_bytes())
    assert left.pop("later") == [1]
    assert left == json.loads(case.after_uninstall or b"{}")


@pytest.mark.parametrize("case", cases(*FILE_CLIENTS, left_alone=True), ids=str)
def test_what_cant_be_edited_is_left_alone_and_the_person_is_told_what_to_write(tmp_path: Path, case: Case) -> None:
    account = account_at(tmp_path)
    path, client = case.place_at(account), client_of(case.client, account)
    with pytest.raises((CantChange, CantRead)) as refused:
        client.planned_install(WANTED)
    if isinstance(refused.value, CantChange):
        assert WANTED.command in refused.value.by_hand or "Remove it there" in refused.value.by_hand
    assert path.read_bytes() == case.content("before")
    assert list(path.parent.iterdir()) == [path]


def test_there_are_cases_of_every_form() -> None:
    assert {folder.name for folder in DATA.iterdir()} == {*FILE_CLIENTS, "settings"}
    assert len(EDITABLE) > 30


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    for name in ("codex", "cursor", "antigravity", "opencode"):
        client = client_of(name, account_at(tmp_path))
        apply(lambda client=client: client.planned_install(WANTED))  # type: ignore[misc]
        assert client.registered() is not None
        apply(client.planned_removal)
        assert list(client.path.parent.iterdir()) == []
