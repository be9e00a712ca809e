"""A real Claude Code session that messages are sent to, while its streamer and its MCP server are killed.

Its model arms the Monitor again whenever that has ended. Claude Code starts the server again when its model calls
a tool, or when the person reconnects it: that one asks for either now and then, and for work in the middle of which
messages come.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random

import anyio
import psutil

from fakes.messages_api import MessagesApi
from fakes.messages_script import Rule, call, shown
from harness_adapters.claude.framing import decode, whole_deliveries
from harness_adapters.commands.progress import Show
from tests.another_session import ChannelView
from tests.real.agent_channel import (
    CLAUDE,
    JOIN,
    JOINS_AND_LISTENS,
    PEER,
    SERVER,
    address_of,
    claude_with_agent_channel,
    monitor_command,
    monitor_has_ended,
    sending,
)
from tests.real.claude_rig import POLL_S, StreamSession, arm_monitor
from tests.real.codex_home import command_line
from tests.real.random_kills import WAIT_MAX, RandomKills
from tests.real.seen_verdict import Showing, Verdict, judge

TELL, WORK = "tell them how it goes", "count to a million"
WORKS_FOR = "sh work.sh"
WORK_S = 2
ASKS_S = (0.5, 2.0)
"""Between two requests of the person, who asks for what needs the server as soon as that is dead."""

RECONNECTS = 0.5
"""The part of the times in which the person who finds the server dead reconnects it: Claude Code starts one again at a
tool call, but gives up one that died as it started ("not connected")."""

SETTLED_S_MAX = 300
IN_ALL_S = (60, 3)
"""The most that a campaign takes: the start, and each message."""


async def seen_by_claude(messages: int, dice: Random, show: Show) -> tuple[Verdict, Counter[str]]:
    """What came of so many messages, and how many processes of each kind were killed."""
    rules = [
        Rule(monitor_has_ended, arm_monitor(monitor_command()), times=None),
        *JOINS_AND_LISTENS,
        Rule(shown(TELL), sending("well", PEER), times=None),
        Rule(shown(WORK), call("Bash", {"command": WORKS_FOR, "description": "count"}), times=None),
    ]
    within_s = IN_ALL_S[0] + SETTLED_S_MAX + IN_ALL_S[1] * messages
    allow = [f"Bash({WORKS_FOR})"]
    async with claude_with_agent_channel(*rules, allow=allow, within_s=within_s) as (api, world, channel):
        (world.work / "work.sh").write_text(f"sleep {WORK_S}\n")
        async with world.stream_session() as session:
            campaign = _Campaign(api, channel, session, dice, show)
            return await campaign.run(messages), campaign.kills.struck


class _Campaign:
    def __init__(
        self, api: MessagesApi, channel: ChannelView, session: StreamSession, dice: Random, show: Show
    ) -> None:
        self._api = api
        self._channel = channel
        self._session = session
        self._dice = dice
        self._answered: set[int] = set()
        self.kills = RandomKills(dice, self._victims, show)

    async def run(self, messages: int) -> Verdict:
        await self._session.say(JOIN)
        await self._channel.until_active(address_of(self._session))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask)
            async with anyio.create_task_group() as blows:
                for _ in range(messages - 1):
                    await self._until_few_wait()
                    blows.start_soon(self.kills.strike_now_and_then)
                    await self._send()
                    await self.kills.pause()
            await self._send()
            verdict = await self._until_it_holds()
            tasks.cancel_scope.cancel()
        return verdict

    async def _until_few_wait(self) -> None:
        while (await self._channel.states(to=CLAUDE)).count("pending") > WAIT_MAX:  # noqa: ASYNC110 - others change it
            await anyio.sleep(POLL_S)

    async def _send(self) -> None:
        sent = await self._channel.session(PEER).send(self.kills.next_text(), CLAUDE)
        self._answered.add(sent["id"])

    async def _ask(self) -> None:
        """The person at the session."""
        while True:
            await anyio.sleep(self._dice.uniform(*ASKS_S))
            await self._session.wait_until_idle()
            if self._victims()["server"]:
                await self._session.say(self._dice.choice([TELL, WORK]))
                continue
            if self._dice.random() < RECONNECTS:
                await self._session.reconnect(SERVER)
            await self._session.say(TELL)

    def _victims(self) -> dict[str, Sequence[psutil.Process]]:
        processes = self._session.world.processes()
        return {
            "streamer": [each for each in processes if command_line(each)[-1:] == ["monitor"]],
            "server": [each for each in processes if "harness_adapters.mcp_server" in command_line(each)],
        }

    async def _until_it_holds(self) -> Verdict:
        """Wait until all is seen and the model has answered to it, or for as long as any look-up takes."""
        with anyio.move_on_after(SETTLED_S_MAX):
            await self._channel.until_states(["seen"] * len(self._answered), to=CLAUDE)
            await self._session.wait_until_idle()
        return judge(await self._channel.deliveries(to=CLAUDE), self._showings(), self._answered)

    def _showings(self) -> list[Showing]:
        """Each writing that stands whole in the model's requests, over all Monitors."""
        lines: dict[str, list[str]] = defaultdict(list)
        for each in self._api.notifications(self._session.registry()["sessionId"]):
            lines[each.task_id] += (each.event or "").split("\n")
        decoded = (decode(whole.lines) for of_one in lines.values() for whole in whole_deliveries(of_one))
        return [Showing(header.message_id, text, header.repeat) for header, text in decoded]
