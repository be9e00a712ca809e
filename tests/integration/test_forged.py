"""Forged texts through our processes: to a thread over the fake Codex, and to a session's Monitor."""

import re
from pathlib import Path

import anyio
import pytest

from channel.errors import BadText
from fakes.codex_thread import ThreadOwner
from harness_adapters.claude.framing import parse_header
from harness_adapters.codex.envelope import ORIGIN
from tests.another_session import ROOM
from tests.codex_sessions import SENDER
from tests.forged import BODIES, bodies, joined, kind
from tests.integration.claude_stand_in import PEER, claude_stand_in
from tests.integration.codex_world import World

LIMIT_S = 50

pytestmark = pytest.mark.fault("F45")


async def test_each_is_one_user_message_of_its_thread_exact_below_its_own_two_lines(world: World) -> None:
    texts = list(bodies().values())
    await world.join()
    ids = [await world.send(text) for text in texts]
    await world.until_state(ids[-1], "accepted")
    with ThreadOwner(world.home, world.thread) as owner:
        while owner.run_row() is not None:
            pass
    said = [item.body["content"] for item in world.home.items(world.thread) if item.body.get("clientId")]

    assert [len(content) for content in said] == [1] * len(texts)
    for content, message_id, text in zip(said, ids, texts, strict=True):
        head, _, below = content[0]["text"].partition("\n")
        assert re.fullmatch(rf"{message_id} {ROOM} {SENDER}( age=\w+)?", head)
        assert below == f"{ORIGIN}\n{text}"


async def test_in_a_monitor_no_line_of_them_stands_without_its_mark(tmp_path: Path) -> None:
    texts = [joined(name) for name in BODIES]
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join("bob")
            async with claude.monitor():
                sent = [(await claude.peer.send(text, "bob"))["id"] for text in texts]
                await claude.channel.until_states(["seen"] * len(texts), to="bob")
    lines = [line for each in claude.notifications.items for line in each.text.split("\n")]
    headers = [parse_header(line) for line in lines if line[0] not in "|…"]

    assert [text for _, text in claude.shown] == texts
    assert list(dict.fromkeys(header and (header.message_id, header.room, header.sender) for header in headers)) == [
        (message_id, ROOM, PEER) for message_id in sent
    ]


@pytest.mark.parametrize("text", kind("refused").values(), ids=kind("refused"))
async def test_what_no_receiver_can_be_given_is_refused_at_send(world: World, text: str) -> None:
    await world.join()
    with pytest.raises(BadText):
        await world.send(text)
