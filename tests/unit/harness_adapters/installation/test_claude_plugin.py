"""The plugin as files: what they name, and how they come and go."""

import json
from pathlib import Path

import pytest

from channel.place import default_database
from harness_adapters.claude.launch_command import launch_command
from harness_adapters.installation import skill
from harness_adapters.installation.claude_plugin import planned_install, planned_removal, plugin_files, plugin_folder
from harness_adapters.installation.client import Account, CantChange, Change, own_registration

DATABASE = Path("/data/other channel.db")
SERVER = own_registration(None)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account(tmp_path, {})


def written(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def done(change: Change | None) -> str:
    assert change is not None
    return change.apply()


def test_it_names_the_server_as_it_is_registered_and_the_streamer_that_join_would_name() -> None:
    files = plugin_files(own_registration(DATABASE))
    server = json.loads(files[".mcp.json"])["mcpServers"]["agent-channel"]
    (monitor,) = json.loads(files["monitors/monitors.json"])
    assert (server["command"], *server["args"]) == own_registration(DATABASE).words
    assert f"while {launch_command(DATABASE, default_database(), None)} --restartable;" in monitor["command"]


def test_that_of_the_default_channel_names_no_file() -> None:
    assert "--db" not in "".join(plugin_files(SERVER).values())


def test_it_is_written_once_and_removed_without_a_trace(account: Account) -> None:
    folder = plugin_folder(account)
    assert done(planned_install(account, SERVER)) == f"the plugin is in {folder}"
    assert written(folder) == plugin_files(SERVER)
    assert planned_install(account, SERVER) is None
    assert done(planned_removal(account)) == f"removed the plugin from {folder}"
    assert list(folder.parent.iterdir()) == []
    assert planned_removal(account) is None


def test_its_folder_is_the_skills_which_comes_and_goes_by_itself(account: Account) -> None:
    folder = plugin_folder(account)
    copy = skill.skill_files(account)["claude-code"]
    for change in (skill.planned_copy(copy), planned_install(account, SERVER)):
        done(change)
    assert {"SKILL.md", *plugin_files(SERVER)} <= set(written(folder))
    done(planned_removal(account))
    assert skill.planned_copy(copy) is None
    done(skill.planned_removal(copy))
    assert not folder.exists()


def test_an_older_one_is_shown_as_a_difference_and_replaced(account: Account) -> None:
    done(planned_install(account, own_registration(DATABASE)))
    change = planned_install(account, SERVER)
    assert change is not None
    assert str(DATABASE) in change.diff()
    change.apply()
    assert written(plugin_folder(account)) == plugin_files(SERVER)


def test_what_is_not_ours_in_the_folder_stays(account: Account) -> None:
    monitors = plugin_folder(account) / "monitors"
    monitors.mkdir(parents=True)
    (monitors / "notes.txt").write_text("mine")
    done(planned_install(account, SERVER))
    done(planned_removal(account))
    assert written(plugin_folder(account)) == {"monitors/notes.txt": "mine"}


def test_a_file_that_cant_be_read_says_so(account: Account) -> None:
    (plugin_folder(account) / ".mcp.json").mkdir(parents=True)
    with pytest.raises(CantChange, match="can't be read"):
        planned_install(account, SERVER)
