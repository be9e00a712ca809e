"""Long texts to a Claude Code session, through real streamers: whole, or begun and fetched with the command named."""

import re
import shlex
from pathlib import Path

import anyio
import pytest

from harness_adapters.claude.framing import decode, whole_deliveries
from harness_adapters.claude.marking import unmarked_text
from harness_adapters.claude.paging import paginate
from tests.integration.claude_stand_in import ClaudeStandIn, claude_stand_in

LIMIT_S = 50
LINE = "line with ünïcode 🙂\t\n"


def text_of(characters: int) -> str:
    return (LINE * (characters // len(LINE) + 1))[:characters]


def lines_shown(claude: ClaudeStandIn) -> list[str]:
    return [line for each in claude.notifications.items for line in each.text.split("\n")]


@pytest.mark.fault("F5")
async def test_a_text_of_up_to_eight_flushes_arrives_exactly_and_a_longer_one_is_fetched_exactly(
    tmp_path: Path,
) -> None:
    texts = [text_of(characters) for characters in (4_700, 10_000, 1_000_000)]
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join("bob")
            async with claude.monitor():
                for text in texts:
                    await claude.peer.send(text, "bob")
                await claude.channel.until_states(["seen"] * 3, to="bob")
                row = (await claude.channel.deliveries(to="bob"))[-1]
            short, longer, longest = whole_deliveries(lines_shown(claude))
            page, whole = await fetch(claude, longest.lines)
    assert [decode(each.lines)[1] for each in (short, longer)] == texts[:2]
    assert longest.shortened
    assert row["detail"] == "shortened"
    assert texts[2].startswith(unmarked_text(line for line in longest.lines if line[0] in "|…"))
    assert whole == texts[2]
    assert page == paginate(whole, 1).text


async def fetch(claude: ClaudeStandIn, lines: tuple[str, ...]) -> tuple[str, str]:
    """The first page, by the command that the message itself names, and the whole text, by the same without a page."""
    rest = " ".join(lines).partition("+")[2].replace(" …", "")
    told = re.search(r"characters: (\S.*) --page 1", rest)
    assert told is not None, rest
    words = shlex.split(told[1])
    first = await anyio.run_process([*words, "--page", "1"], env=claude.environment)
    whole = await anyio.run_process(words, env=claude.environment)
    return first.stdout.decode(), whole.stdout.decode()
