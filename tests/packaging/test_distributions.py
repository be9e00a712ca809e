"""What a user installs: the wheel alone, among folders of the user's own that have our names."""

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Installed

pytestmark = pytest.mark.timeout(240)

RUN_S = 30

LOADED_BY_THE_STREAMER = {"aiosqlite", "anyio", "sniffio", "typing_extensions", "exceptiongroup", "idna", "tenacity"}
"""All that the streamer may load besides the standard library and ours; sniffio, idna and exceptiongroup are of
older anyio and Python versions."""

OF_THE_ENVIRONMENT = {"_distutils_hack", "sitecustomize", "usercustomize"}
"""Loaded by the interpreter itself, where it has them."""

OURS = {"channel", "waiters", "harness_adapters"}


def _run(*command: object, cwd: Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    bare = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=bare | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )


def test_the_wheel_holds_the_product_with_its_sql_its_skill_and_its_page_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == OURS
    on_disk = {
        str(path.relative_to(ROOT))
        for folder in OURS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {Path(name).suffix for name in on_disk} >= {".py", ".sql", ".md", ".html", ".css", ".js", ".svg"}
    assert {name for name in names if ".dist-info/" not in name} == on_disk


def test_the_sdist_holds_fakes_and_tests_and_no_installed_package(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"fakes/codex_app_server.py", "tests/test_architecture.py", "tests/real/package-lock.json", "Makefile"}
    wanted |= {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "constraints.txt"}
    wanted |= {"docs/troubleshooting.md", "docs/demo.svg", "tests/demo/recorded.txt"}
    assert wanted <= names
    assert not {name for name in names if "node_modules" in name or "__pycache__" in name}


@pytest.mark.parametrize("command", ["agent-channel", "agent-channel-mcp"])
def test_both_console_commands_are_installed_and_run(installed: Installed, tmp_path: Path, command: str) -> None:
    done = _run(installed.bin / command, "--help", cwd=tmp_path, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {command} ")


def test_the_version_stands_in_one_place(installed: Installed, tmp_path: Path) -> None:
    """In pyproject.toml; everything else asks the installed package."""
    number = version("agent-channel")
    assert f'\nversion = "{number}"\n' in (ROOT / "pyproject.toml").read_text()
    shown = "from importlib.metadata import version; print(version('agent-channel'))"
    assert _run(installed.python, "-I", "-c", shown, cwd=tmp_path, home=tmp_path).stdout == f"{number}\n"
    assert _run(installed.bin / "agent-channel", "--version", cwd=tmp_path, home=tmp_path).stdout == (
        f"agent-channel {number}\n"
    )
    repeated = [path for folder in OURS for path in (ROOT / folder).rglob("*.py") if f'"{number}"' in path.read_text()]
    assert repeated == []


@pytest.fixture
def project_with_our_names(tmp_path: Path) -> Path:
    """A user's project with packages of its own that are called as ours are."""
    for name in OURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a decoy was imported')\n")
    return tmp_path


def test_the_streamers_command_takes_ours_among_decoys(
    installed: Installed, project_with_our_names: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    words = ["-m", "harness_adapters.cli", "monitor", "--session", "nobody", "--db", home / "channel" / "channel.db"]
    decoyed = _run(installed.python, *words, cwd=project_with_our_names, home=home, PYTHONPATH=".")
    assert "a decoy was imported" in decoyed.stderr
    process = subprocess.Popen(
        [str(word) for word in (installed.python, "-I", *words)],
        cwd=project_with_our_names,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": "."},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()  # a reader that is gone ends the streamer
    _, stderr = process.communicate(timeout=RUN_S)
    assert (process.returncode, stderr) == (0, "")


def test_the_server_takes_ours_among_decoys(
    installed: Installed, project_with_our_names: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A console command has its own folder in front of its path, not the working folder; PYTHONPATH is the user's."""
    home = tmp_path_factory.mktemp("home")
    done = _run(installed.bin / "agent-channel-mcp", "--help", cwd=project_with_our_names, home=home)
    assert done.returncode == 0, done.stderr


def test_peoples_command_loads_neither_the_protocol_library_nor_its_validator(
    installed: Installed, tmp_path: Path
) -> None:
    program = (
        "import sys; from harness_adapters.cli import main; status = main(['message', '1']);"
        "print(status, sorted({'mcp', 'mcp_types', 'pydantic'} & set(sys.modules)))"
    )
    done = _run(installed.python, "-I", "-c", program, cwd=tmp_path, home=tmp_path)
    assert done.stdout == "1 []\n"
    assert done.stderr.startswith("agent-channel: ")


def test_the_streamer_loads_little(installed: Installed, tmp_path: Path) -> None:
    """Run to its end, with its reader gone: what it loads late is counted too."""
    process = subprocess.Popen(
        [installed.python, "-I", "-X", "importtime", "-m", "harness_adapters.cli", "monitor", "--session", "nobody"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, stderr = process.communicate(timeout=RUN_S)
    assert process.returncode == 0
    loaded = _imported(stderr)
    assert loaded >= OURS | {"aiosqlite", "anyio"}
    not_found = {"org"}  # a module of another Python that `copy` tries
    foreign = loaded - set(sys.stdlib_module_names) - OURS - OF_THE_ENVIRONMENT - not_found - _at_each_start(installed)
    assert foreign <= LOADED_BY_THE_STREAMER


def _at_each_start(installed: Installed) -> set[str]:
    """What the machine's own Python asks for: Debian's, for one, a hook of its crash reporter, found or not."""
    command = [installed.python, "-I", "-X", "importtime", "-c", ""]
    return _imported(subprocess.run(command, capture_output=True, text=True, check=True).stderr)


def _imported(times: str) -> set[str]:
    """The packages that a table of -X importtime names, and a word of its head."""
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in times.splitlines() if "|" in line}
