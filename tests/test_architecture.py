"""The folders are the architecture: what ARCHITECTURE.md says of imports, clocks and tasks, read off the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "channel": {"channel"},
    "waiters": {"channel", "waiters"},
    "harness_adapters": {"channel", "waiters", "harness_adapters"},
    "fakes": {"channel", "waiters", "fakes"},
    "tests": {"channel", "waiters", "harness_adapters", "fakes", "tests"},
}
"""Our folders, and which of them each may import. A fake that shared the client's code would share its mistakes."""

PRODUCT = ("channel", "waiters", "harness_adapters")

CLOCK_MODULES = {"time", "random", "secrets", "uuid"}
CLOCK_CALLS = {"now", "utcnow", "today", "sleep", "current_time", "loop_time"}
"""As attributes of one of CLOCK_OBJECTS. Time limits (`fail_after`) bound a wait and decide nothing else."""
CLOCK_OBJECTS = {"datetime", "date", "anyio", "asyncio"}

SLOW_TO_IMPORT = {"mcp", "mcp_types", "pydantic"}
"""Over a second: what a streamer and a person's command must not wait for."""

LINES_MAX = 400
REASON = re.compile(rf"over {LINES_MAX} lines", re.IGNORECASE)
REASON_WITHIN_LINES = 20

NO_BUCKETS = {"utils", "util", "helpers", "helper", "common", "misc", "types"}


def _modules(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if "node_modules" not in path.parts]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def _imports(path: Path) -> Iterator[str]:
    """The dotted names that a module imports, also inside functions; of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _calls(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, object and attribute of each `object.attribute` and (object "") of each plain name."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, node.value.id, node.attr
        elif isinstance(node, ast.Attribute):
            yield node.lineno, "?", node.attr
        elif isinstance(node, ast.Name):
            yield node.lineno, "", node.id


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_from_the_folders_below_it(folder: str) -> None:
    ours = set(MAY_IMPORT)
    wrong = {
        f"{_name(path)} imports {name}"
        for path in _modules(folder)
        for name in _imports(path)
        if _top(name) in ours - MAY_IMPORT[folder]
    }
    assert wrong == set()


def test_only_one_module_imports_the_database_driver() -> None:
    importers = {_name(path) for path in _modules(*PRODUCT) if "aiosqlite" in set(_imports(path))}
    assert importers == {"channel/database.py"}


def test_only_one_module_reads_the_clock_or_draws_an_id() -> None:
    readers = set()
    for path in _modules(*PRODUCT):
        if CLOCK_MODULES & {_top(name) for name in _imports(path)}:
            readers.add(_name(path))
        if any(thing in CLOCK_OBJECTS and attribute in CLOCK_CALLS for _, thing, attribute in _calls(path)):
            readers.add(_name(path))
    assert readers == {"channel/clock.py"}


def test_no_task_without_an_owner_and_no_thread() -> None:
    """A task lives in a task group. The only threads are aiosqlite's, and the SDK's on stdin."""
    forbidden = {"create_task", "ensure_future", "run_in_executor", "to_thread"}
    found = {
        f"{_name(path)}:{line}: {attribute}"
        for path in _modules(*PRODUCT, "fakes")
        for line, _, attribute in _calls(path)
        if attribute in forbidden
    }
    threading = {_name(path) for path in _modules(*PRODUCT, "fakes") if "threading" in set(_imports(path))}
    assert (found, threading) == (set(), set())


def test_the_command_line_never_reaches_the_protocol_library() -> None:
    """Followed through every module of ours, imports inside functions included."""
    seen: set[Path] = set()
    entrance = ROOT / "harness_adapters" / "cli.py"
    open_paths = [entrance, *_modules("harness_adapters/commands")]  # the entrance imports them by name
    foreign = set()
    while open_paths:
        path = open_paths.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imports(path):
            if _top(name) in PRODUCT:
                open_paths += [found for found in _files_of(name) if found.exists()]
            else:
                foreign.add(_top(name))
    assert len(seen) > 20, "the walk no longer reaches the streamer"
    assert foreign & SLOW_TO_IMPORT == set()


def _files_of(name: str) -> list[Path]:
    base = ROOT.joinpath(*name.split("."))
    return [base.with_suffix(".py"), base / "__init__.py"]


def test_nothing_but_the_commands_prints() -> None:
    silent = set(_modules(*PRODUCT)) - set(_modules("harness_adapters/commands"))
    assert {_name(path) for path in silent for _, *call in _calls(path) if call == ["", "print"]} == set()


def test_a_long_module_says_why() -> None:
    unexplained = set()
    for path in _modules(*MAY_IMPORT):
        lines = path.read_text().splitlines()
        if len(lines) > LINES_MAX and not REASON.search("\n".join(lines[:REASON_WITHIN_LINES])):
            unexplained.add(f"{_name(path)}: {len(lines)}")
    assert unexplained == set()


def test_no_file_is_a_bucket() -> None:
    assert {_name(path) for path in _modules(*MAY_IMPORT) if path.stem in NO_BUCKETS} == set()
