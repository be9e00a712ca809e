"""The skill's copies: made, renewed by a newer version, and never a person's own text overwritten or removed."""

from pathlib import Path

import pytest

from harness_adapters.installation import skill
from harness_adapters.installation.client import CantChange
from harness_adapters.installation.skill import PACKAGED, planned_copy, planned_removal, skill_files
from tests.unit.harness_adapters.installation.golden import account_at, apply


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return skill_files(account_at(tmp_path))["codex"]


def test_a_copy_comes_and_goes_without_a_trace(tmp_path: Path, copy: Path) -> None:
    for place in skill_files(account_at(tmp_path)).values():
        apply(lambda place=place: planned_copy(place))  # type: ignore[misc]
        assert place.read_bytes() == PACKAGED.read_bytes()
        assert planned_copy(place) is None
        apply(lambda place=place: planned_removal(place))  # type: ignore[misc]
        assert planned_removal(place) is None
    assert list(tmp_path.rglob("*")) == [tmp_path / ".claude"]


def test_an_older_version_s_copy_is_renewed_and_can_be_removed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(lambda: planned_copy(copy))
    newer = copy.parents[2] / "newer.md"
    newer.write_text("newer\n")
    monkeypatch.setattr(skill, "PACKAGED", newer)
    removal, renewal = planned_removal(copy), planned_copy(copy)
    assert removal is not None
    assert renewal is not None
    assert "+newer" in renewal.diff()
    renewal.apply()
    assert copy.read_text() == "newer\n"


def test_a_copy_that_a_person_changed_is_neither_renewed_nor_removed(copy: Path) -> None:
    apply(lambda: planned_copy(copy))
    copy.write_text("mine\n")
    for plan in (planned_copy, planned_removal):
        with pytest.raises(CantChange, match="was changed since"):
            plan(copy)
    assert copy.read_text() == "mine\n"


def test_what_else_is_in_the_folder_stays(copy: Path) -> None:
    apply(lambda: planned_copy(copy))
    (copy.parent / "notes.md").write_text("mine\n")
    apply(lambda: planned_removal(copy))
    assert [path.name for path in copy.parent.iterdir()] == ["notes.md"]
