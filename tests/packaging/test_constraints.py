"""constraints.txt is what pyproject.toml asks for, for every Python, pinned and hashed."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _environment(python: str) -> dict[str, Any]:
    return {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}


def _asked(python: str) -> Iterator[Requirement]:
    """Everything that a contributor needs: the dependencies, and the extra `dev` with what it includes."""
    project = _project()
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["fakes"], *extras["dev"]]:
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate(_environment(python))
        if applies and requirement.name != project["name"]:
            yield requirement


def _blocks() -> list[str]:
    """Each pin with its hashes, as one line."""
    return (ROOT / "constraints.txt").read_text().replace("\\\n", " ").splitlines()


def _pins(python: str) -> dict[str, str]:
    environment = _environment(python)
    pins = {}
    for block in _blocks():
        requirement = Requirement(block.split(" --hash", 1)[0])
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            assert name not in pins, f"{name} is pinned twice for {python}"
            pins[name] = str(requirement.specifier).removeprefix("==")
    return pins


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_asked_for_is_pinned_to_a_version_that_will_do(python: str) -> None:
    pins = _pins(python)
    wrong = {
        str(requirement)
        for requirement in _asked(python)
        if not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0.0.0"))
    }
    assert wrong == set()


def test_every_pin_is_exact_and_has_hashes() -> None:
    for block in _blocks():
        assert re.match(r"[\w.-]+==[\w.]+ ", block), block
        assert "--hash=sha256:" in block, block


def test_dependencies_have_floors_and_only_known_breaks_have_caps() -> None:
    """mcp 3 does not exist yet, and 2 broke everything of 1; jsonrpcserver 6 is another library."""
    capped = set()
    for requirement in _asked(PYTHONS[0]):
        operators = {specifier.operator for specifier in requirement.specifier}
        assert ">=" in operators, requirement
        if operators != {">="}:
            capped.add(requirement.name)
    assert capped == {"mcp", "jsonrpcserver"}
