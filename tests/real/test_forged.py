"""Forged texts to the real harnesses: what their models are shown is one message each, and the text is exact."""

import anyio
import pytest

from fakes.responses_api import ResponsesApi
from tests.forged import BODIES, joined
from tests.real.agent_channel import (
    CLAUDE,
    JOINS_AND_LISTENS,
    PEER,
    claude_with_agent_channel,
    has_shown,
    shown_messages,
)
from tests.real.channel_rig import ROOM, ChannelRig
from tests.real.codex_home import CodexHome
from tests.real.codex_rig import app_server
from tests.real.test_claude_monitor import listen
from tests.real.test_codex_delivery import envelope, joined_thread

WITHIN_S = 100

pytestmark = [pytest.mark.real, pytest.mark.timeout(180), pytest.mark.fault("F45")]


async def test_to_claude_code_each_line_stays_behind_its_mark():
    texts = [joined(name) for name in BODIES]
    async with claude_with_agent_channel(*JOINS_AND_LISTENS, within_s=WITHIN_S) as (api, world, channel):
        async with world.stream_session() as session:
            await listen(session, channel)
            sent = [(await channel.session(PEER).send(text, CLAUDE))["id"] for text in texts]
            await channel.until_states(["seen"] * len(texts), to=CLAUDE)
            await api.wait_for(has_shown(f"{sent[-1]} {ROOM} {PEER}"))
            notifications = api.notifications()
    assert [text for _, text in shown_messages(notifications)] == texts
    lines = [line for each in notifications if each.event for line in each.event.split("\n")]
    unmarked = [line for line in lines if line[:1] not in ("|", "…")]
    assert {" ".join(line.split(" ")[:3]) for line in unmarked} == {f"{number} {ROOM} {PEER}" for number in sent}


async def test_to_codex_each_is_one_user_message(codex: CodexHome, responses_api: ResponsesApi):
    texts = [joined(name) for name in BODIES]
    rig = ChannelRig(codex, responses_api)
    with anyio.fail_after(WITHIN_S):
        async with app_server(codex) as owner, rig.peer("tester") as tester:
            await joined_thread(rig, owner)
            for text in texts:
                sent = await tester.send(text, "codex")
                request = await rig.until_shown(text)
                await rig.until_delivery(sent["id"], state="seen")
                assert request.user_texts[-1] == envelope(sent["id"], text)
                assert len(rig.shown(text)) == 1
