"""The one rule: put in where it was asked for, taken out where an install put it in."""

import json
from pathlib import Path

import pytest

from channel.place import default_database
from harness_adapters.claude.launch_command import launch_command
from harness_adapters.installation import permission_rule
from harness_adapters.installation.client import Account, CantChange, CantRead
from harness_adapters.installation.file_change import backup_of
from harness_adapters.installation.permission_rule import (
    is_allowed,
    planned_rule,
    planned_withdrawal,
    settings_file,
    streamer_rule,
)
from tests.unit.harness_adapters.installation.golden import PYTHON, Case, account_at, apply, cases

DATABASE = Path("/srv/channel.db")
OF_GOLDEN = f"Bash({PYTHON} -I -m harness_adapters.cli monitor)"


@pytest.fixture
def account(tmp_path: Path) -> Account:
    settings_file(account_at(tmp_path)).parent.mkdir()
    return account_at(tmp_path)


def test_the_rule_is_the_very_command_that_join_returns() -> None:
    default = default_database()
    assert streamer_rule(None) == f"Bash({launch_command(default, default, None)})"
    assert streamer_rule(DATABASE) == f"Bash({launch_command(DATABASE, default, None)})"


def test_a_path_with_a_blank_is_said_since_no_rule_matches_it(account: Account) -> None:
    with pytest.raises(CantChange, match="needs quotes"):
        planned_rule(account, Path("/a b/channel.db"))


@pytest.mark.fault("F47")
@pytest.mark.parametrize("case", cases("settings"), ids=str)
def test_only_the_rules_bytes_come_and_go(account: Account, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission_rule, "launch_command", lambda *_: OF_GOLDEN.removeprefix("Bash(").removesuffix(")"))
    path = settings_file(account)
    path.write_bytes(case.content("before"))
    apply(lambda: planned_rule(account, None))
    assert path.read_bytes() == case.content("installed")
    assert is_allowed(account, OF_GOLDEN)
    assert planned_rule(account, None) is None
    apply(lambda: planned_withdrawal(account))
    assert path.read_bytes() == case.content("before")
    assert not backup_of(path).exists()


@pytest.mark.fault("F47")
@pytest.mark.parametrize("case", cases("settings", left_alone=True), ids=str)
def test_settings_that_are_not_plain_json_are_left_alone(account: Account, case: Case) -> None:
    path = settings_file(account)
    path.write_bytes(case.content("before"))
    with pytest.raises(CantChange) as refused:
        planned_rule(account, None)
    assert str(streamer_rule(None)) in refused.value.by_hand
    with pytest.raises(CantRead):
        is_allowed(account, "Bash(x)")
    assert path.read_bytes() == case.content("before")


def test_a_rule_that_a_person_wrote_stays(account: Account) -> None:
    path = settings_file(account)
    path.write_text(json.dumps({"permissions": {"allow": [streamer_rule(None)]}}))
    assert planned_rule(account, None) is None
    assert planned_withdrawal(account) is None
    apply(lambda: planned_rule(account, DATABASE))
    apply(lambda: planned_withdrawal(account))
    assert json.loads(path.read_bytes())["permissions"]["allow"] == [streamer_rule(None)]


def test_every_rule_that_installs_added_goes_and_what_came_since_stays(account: Account) -> None:
    path = settings_file(account)
    for database in (None, DATABASE):
        apply(lambda database=database: planned_rule(account, database))  # type: ignore[misc]
    settings = json.loads(path.read_bytes())
    settings["permissions"]["allow"].insert(1, "WebFetch")
    path.write_text(json.dumps(settings | {"model": "opus"}, indent=2))
    apply(lambda: planned_withdrawal(account))
    assert json.loads(path.read_bytes()) == {"permissions": {"allow": ["WebFetch"]}, "model": "opus"}


def test_settings_that_were_not_there_are_gone_again(account: Account) -> None:
    path = settings_file(account)
    apply(lambda: planned_rule(account, None))
    apply(lambda: planned_withdrawal(account))
    assert list(path.parent.iterdir()) == []
