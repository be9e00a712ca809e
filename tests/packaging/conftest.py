"""The distributions built from this checkout, and an environment that has only the wheel and its dependencies."""

import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_S = 120


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel. `bin`: where its commands are."""

    python: Path

    @property
    def bin(self) -> Path:
        return self.python.parent


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=BUILD_S, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (found,) = distributions.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed as a user does; its dependencies are those of the tests' own environment.

    A `.pth` file in one folder of packages is not read from another, so this checkout is not on the path.
    """
    folder = tmp_path_factory.mktemp("installed") / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir", wheel]
    subprocess.run(install, check=True, timeout=BUILD_S, capture_output=True)
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        timeout=BUILD_S,
        capture_output=True,
        text=True,
    ).stdout.strip()
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(python)
