"""No fault without a test, no test of a fault that is in no list."""

import pytest

from tests.requirements import REAL_FOLDERS, REQUIREMENTS, Marked, Requirement, marked_tests

KNOWN = [requirement.id for requirement in REQUIREMENTS]


@pytest.fixture(scope="module")
def marked() -> list[Marked]:
    return list(marked_tests())


def test_each_fault_is_listed_once_and_says_what_is_right() -> None:
    assert len(set(KNOWN)) == len(KNOWN)
    assert [each.id for each in REQUIREMENTS if not (each.case and each.right and each.source)] == []


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=KNOWN)
def test_a_fault_that_is_listed_is_made_happen(marked: list[Marked], requirement: Requirement) -> None:
    names = [each.name for each in marked if each.fault == requirement.id]
    assert names
    if requirement.real:
        assert any(name.startswith(REAL_FOLDERS) for name in names), "by the real binary too"


def test_a_test_names_only_faults_that_are_listed(marked: list[Marked]) -> None:
    assert {each.fault for each in marked} <= set(KNOWN)
    assert len(marked) > len(KNOWN)
