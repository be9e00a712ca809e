"""What is committed works on any machine: no folder of one machine, no address of a package host."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

_PARTS_OF_MACHINES = ("/wo" + "rk/", "/ro" + "ot/", "/Use" + "rs/", "/tmp/" + "ac/")
"""Written in pieces, since this file is committed too."""

_PACKAGE_HOSTS = re.compile(
    "py" + r"pi\.org|python" + r"hosted\.org|npm" + r"js\.(org|com)|npm" + "mirror", re.IGNORECASE
)

LOCK_FILES = ("constraints.txt", "tests/real/package-lock.json")


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_tracked_file_names_a_machine_or_a_package_host() -> None:
    found = set()
    for path in _tracked():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if any(part in line for part in _PARTS_OF_MACHINES) or _PACKAGE_HOSTS.search(line):
                found.add(f"{path.relative_to(ROOT)}:{number}")
    assert found == set()


@pytest.mark.parametrize("name", LOCK_FILES)
def test_a_lock_file_holds_no_address(name: str) -> None:
    assert "://" not in (ROOT / name).read_text()


def test_every_package_of_the_npm_lock_has_its_hash() -> None:
    packages = json.loads((ROOT / "tests/real/package-lock.json").read_text())["packages"]
    without = {name for name, package in packages.items() if name and "integrity" not in package}
    assert without == set()


def test_no_lock_file_with_addresses_is_tracked() -> None:
    names = {path.name for path in _tracked()}
    assert names & {"uv.lock", "pylock.toml", "poetry.lock"} == set()
