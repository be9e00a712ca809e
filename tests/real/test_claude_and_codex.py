"""The main job on the real binaries: a Claude Code session and a Codex thread wake each other with messages.

Neither is typed to after the start: each message is sent by a model that another message woke. What each
model was shown is read from the requests that its fake endpoint received.
"""

import re

import pytest

from fakes.messages_api import MessagesApi
from fakes.messages_script import Reply, Rule, say
from fakes.messages_shown import ModelRequest as ClaudeRequest
from fakes.responses_api import ModelRequest as CodexRequest
from fakes.responses_api import Reply as CodexReply
from fakes.responses_api import ResponsesApi, Say, call_mcp
from tests.another_session import ROOM
from tests.real import channel_rig
from tests.real.agent_channel import (
    CLAUDE,
    JOIN,
    JOINS_AND_LISTENS,
    address_of,
    claude_with_agent_channel,
    sending,
    shown_messages,
)
from tests.real.channel_rig import ChannelRig
from tests.real.codex_home import CodexHome
from tests.real.codex_rig import codex_terminal

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

WITHIN_S = 150  # two harnesses start, on a machine where other tests run
ROUNDS = 10
CODEX = "codex"
BEGIN = "write to claude"


def text_of(sender: str, number: int) -> str:
    """A text that is easily harmed on the way."""
    return f'number {number} of {sender}\n    if a < b && c > d:\n\n\treturn "⟦{number}⟧ 👩‍👩‍👧"  \n\nnumber-end\n'


def number_in(sender: str, shown: str) -> int | None:
    found = re.search(rf"number (\d+) of {sender}", shown)
    return int(found[1]) if found else None


def claude_model(request: ClaudeRequest) -> Reply:
    """Answers the message that woke it."""
    event = "".join(each.event or "" for each in request.newest_notifications)
    number = number_in(CODEX, event)
    return say("no message") if number is None else sending(text_of(CLAUDE, number), CODEX)


def codex_model(rig: ChannelRig, request: CodexRequest) -> CodexReply:
    """Answers the message that woke it with the next one, up to the last."""
    number = number_in(CLAUDE, request.last_user_text)
    if number is None:
        return rig.script(request)
    if request.step == 0 and number < ROUNDS:
        return call_mcp(channel_rig.SERVER, "send", text=text_of(CODEX, number + 1), to=CLAUDE)
    return Say("read")


def shown_to_codex(api: ResponsesApi) -> list[str]:
    """Every user message of the thread's history, as its newest request holds it."""
    return [text for text in api.requests.items[-1].user_texts if number_in(CLAUDE, text) is not None]


async def test_ten_messages_each_way_wake_the_other_and_arrive_once_in_order_and_exactly(
    codex: CodexHome, responses_api: ResponsesApi
):
    rig = ChannelRig(codex, responses_api)
    rig.turns[BEGIN] = [call_mcp(channel_rig.SERVER, "send", text=text_of(CODEX, 1), to=CLAUDE)]
    responses_api.script = lambda request: codex_model(rig, request)
    rules = [
        *JOINS_AND_LISTENS,
        Rule(lambda request: bool(request.newest_notifications), claude_model, times=None),
    ]
    async with claude_with_agent_channel(*rules, database=rig.database, within_s=WITHIN_S) as (api, world, channel):
        async with world.stream_session() as claude, codex_terminal(codex, channel_rig.JOIN) as user:
            await claude.say(JOIN)
            await channel.until_active(address_of(claude))
            await user.wait_for_output(channel_rig.TURN_DONE)
            join_answer = await rig.join_answer()
            await user.submit(BEGIN)
            await responses_api.requests.wait_for(lambda request: number_in(CLAUDE, request.last_user_text) == ROUNDS)
            await channel.until_states(["seen"] * ROUNDS, to=CLAUDE)
            await channel.until_states(["seen"] * ROUNDS, to=CODEX)
            to_claude, to_codex = await channel.deliveries(to=CLAUDE), await channel.deliveries(to=CODEX)
    numbers = range(1, ROUNDS + 1)
    assert join_answer["waiter"] == "active"
    assert "command" not in join_answer
    assert_shown_to_claude(
        api, [(row["message_id"], text_of(CODEX, n)) for n, row in zip(numbers, to_claude, strict=True)]
    )
    assert shown_to_codex(responses_api) == [
        f"{row['message_id']} {ROOM} {CLAUDE}\nfrom another agent, not your user\n{text_of(CLAUDE, number)}"
        for number, row in zip(numbers, to_codex, strict=True)
    ]


def assert_shown_to_claude(api: MessagesApi, expected: list[tuple[int, str]]) -> None:
    shown = shown_messages(api.notifications())
    assert [(header.message_id, text) for header, text in shown] == expected
    assert {(header.room, header.sender, header.repeat) for header, _ in shown} == {(ROOM, CODEX, False)}
