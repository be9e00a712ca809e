"""Every error text that docs/troubleshooting.md quotes comes out of the product, and each of ours there has its row."""

import ast
import re
from pathlib import Path

import pytest

from fakes.faults import set_faults
from harness_adapters.composition import open_channel
from tests.integration.codex_world import LIST, codex_world
from tests.integration.stuck_deliveries import stuck_deliveries
from tests.packaging.conftest import ROOT
from tests.packaging.pages import code, rows
from tests.packaging.said import SECTIONS, Place, Said
from waiters import status

pytestmark = pytest.mark.timeout(120)

PAGE = ROOT / "docs" / "troubleshooting.md"

FROM_CODEX = {
    status.QUEUE_API_UNSUPPORTED: "-32600:thread/queue/list requires experimentalApi capability",
    status.THREAD_UNKNOWN: "-32603:failed to read thread: invalid thread-store request: no rollout found",
    status.THREAD_ARCHIVED: "-32600:session x is archived",
    status.THREAD_OF_SUB_AGENT: "-32600:direct app-server input is not allowed for unloaded spawned sub-agents",
    status.QUEUE_FULL: "-32600:queue cannot contain more than 100 submissions",
    status.APP_SERVER_UNAVAILABLE: "-32600:something new",
}
"""What Codex's app-server answers, and the word for it."""

MADE_ELSEWHERE = {
    status.UNCERTAIN: ("integration/test_codex_receiver.py", "delivery uncertain: "),
    status.CONFLICT: ("integration/test_codex_receiver.py", "key conflict: "),
    status.OWNED_BY_EXEC: ("real/test_codex_delivery.py", "owned by codex exec: "),
    status.VERSIONS_DIFFER: ("integration/test_codex_waiter_words.py", "versions differ: "),
    status.READER_BLOCKED: ("integration/test_streamer.py", "reader blocked: "),
    status.WAITER_FAILED: ("unit/waiters/test_supervisor.py", "waiter failed: "),
    status.PROGRAM_GONE: ("integration/test_broken_wake_path.py", "program gone: "),
    status.STORE_UNAVAILABLE: ("unit/waiters/test_full_disk.py", "store unavailable: "),
}
"""The tests that make the other words appear: a file under tests/ and what it expects to be said."""


def quotes(heading: str) -> list[str]:
    """The first cell of each row, which is one text between backticks."""
    cells = [code(row[0]) for row in rows(PAGE, heading)]
    assert all(len(cell) == 1 for cell in cells)
    return [cell[0] for cell in cells]


def fits(said: str, quoted: str) -> bool:
    return re.search(".+".join(map(re.escape, quoted.split("…"))), said, re.DOTALL) is not None


@pytest.mark.parametrize("heading", SECTIONS)
def test_each_text_on_the_page_has_a_case_that_makes_it(heading: str) -> None:
    assert quotes(heading) == list(SECTIONS[heading])


CASES = [
    pytest.param(quoted, said, id=re.sub(r"\W+", "-", quoted).strip("-"))
    for cases in SECTIONS.values()
    for quoted, said in cases.items()
]


@pytest.mark.parametrize(("quoted", "said"), CASES)
async def test_a_text_is_said_as_the_page_quotes_it(tmp_path: Path, quoted: str, said: Said) -> None:
    stuck = await stuck_deliveries(tmp_path)
    async with open_channel(stuck.database, durable=False, create=False) as channel:
        now = await said(Place(tmp_path, stuck, channel))
    assert fits(now, quoted), now


@pytest.mark.parametrize("word", FROM_CODEX)
async def test_what_codex_refuses_is_said_with_the_pages_word(tmp_path: Path, word: str) -> None:
    async with codex_world(tmp_path) as world:
        set_faults(world.home, f"after_effect:{LIST}#*:error={FROM_CODEX[word]}")
        assert (await world.join())["waiter_detail"].startswith(f"{word}: ")


def test_each_other_word_is_expected_by_the_test_that_makes_it_appear() -> None:
    assert {*FROM_CODEX, *MADE_ELSEWHERE} == set(status.WORDS)
    for word, (file, expected) in MADE_ELSEWHERE.items():
        texts = [
            node.value
            for node in ast.walk(ast.parse((ROOT / "tests" / file).read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert any(text.startswith(expected) for text in texts), word


def test_a_quoted_text_fits_only_what_says_all_of_it() -> None:
    assert fits(
        "agent-channel: There is no room 'x' in this channel. The rooms …", "There is no room … in this channel."
    )
    assert not fits("There is no room in this channel.", "There is no room … in this channel.")
    assert not fits("There is no role 'x' in this channel.", "There is no room … in this channel.")
