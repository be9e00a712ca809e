"""What the pages say of the code is read off the code again."""

import re
from collections.abc import Iterator

import pytest

from channel.delivery_states import MONITOR_TABLE, QUEUE_TABLE, State, Table
from channel.messages import Message
from harness_adapters.claude.framing import Header, encode, flush_bytes
from harness_adapters.codex.envelope import envelope
from harness_adapters.tool_texts import TOOLS
from tests.packaging.conftest import ROOT
from waiters import status

EXAMPLE = Message(17, "hall", "planner", "def half(n):\n    return n // 2", None, created_at_ms=0)


def _page(name: str) -> str:
    return (ROOT / name).read_text()


def _rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = re.split(r"^##+ ", page.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def _words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_readme_says_what_to_do_for_every_word_of_waiter_detail() -> None:
    rows = _rows(_page("README.md"), "What `waiter_detail` says, and what to do")
    assert [_words(row[0]) for row in rows] == [[word] for word in status.WORDS]
    assert all(len(row) == 3 and all(row) for row in rows)


def test_the_readme_explains_every_state() -> None:
    names = [state.value for state in State]
    assert [_words(row[0])[0] for row in _rows(_page("README.md"), "Delivery states")] == names


def test_the_readme_explains_every_tool_with_its_parameters() -> None:
    signatures = []
    for tool in TOOLS:
        schema = tool["schema"]
        names = [name if name in schema["required"] else f"{name}?" for name in schema["properties"]]
        signatures.append(f"{tool['name']}({', '.join(names)})")
    assert [_words(row[0])[0] for row in _rows(_page("README.md"), "The four tools")] == signatures


def _transitions(rows: list[list[str]]) -> Iterator[tuple[str, str, str]]:
    """A cell may name several states or events; `to` is one."""
    for from_cell, event_cell, to_cell in rows:
        for state in _words(from_cell):
            for event in _words(event_cell):
                (to,) = _words(to_cell)
                yield state, event, state if to == "unchanged" else to


@pytest.mark.parametrize(
    ("heading", "table"), [("A Codex thread's queue", QUEUE_TABLE), ("A Claude Code Monitor", MONITOR_TABLE)]
)
def test_the_state_tables_of_the_architecture_page_are_those_of_the_code(heading: str, table: Table) -> None:
    written = sorted(_transitions(_rows(_page("ARCHITECTURE.md"), heading)))
    assert written == sorted((state.value, event.value, to.value) for (state, event), to in table.items())


def test_the_examples_of_a_delivery_are_what_is_written() -> None:
    readme = _page("README.md")
    framed = encode(Header(EXAMPLE.message_id, EXAMPLE.room, EXAMPLE.sender), EXAMPLE.text, "")
    assert f"```text\n{flush_bytes(framed.parts).decode()}```" in readme
    assert f"```text\n{envelope(EXAMPLE, now_ms=0)}\n```" in readme
