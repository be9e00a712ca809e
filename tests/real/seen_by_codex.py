"""A real Codex thread that messages are sent to, while the servers that serve it and their app-servers are killed.

Codex has an owner that a person talks to again and again. The thread's own server is started again by Codex, when
the person has it reload its servers; meanwhile the server of the sender serves the thread, and is killed too.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import psutil
from anyio.abc import TaskGroup
from mcp import MCPError

from fakes.responses_api import ModelRequest, Reply, Say, serve_responses_api
from harness_adapters.codex.envelope import ORIGIN
from harness_adapters.commands.progress import Show
from tests.real.channel_rig import JOIN, ChannelRig
from tests.real.codex_client import AppServer
from tests.real.codex_home import POLL_S, codex_home
from tests.real.codex_rig import app_server
from tests.real.random_kills import WAIT_MAX, RandomKills
from tests.real.seen_verdict import Showing, Verdict, judge

ROLE, SENDER = "codex", "tester"

TALK_S = 0.5
"""The person says something so often: an owner whose turn ends looks at its queue at once, an idle one every 10 s."""

RELOADS = 0.4
"""The part of the times in which a person who finds the thread's server dead has it started again."""

STEPS_MAX = 60
"""In a turn that waits for the tools of a server: one that was killed as it started offers none."""

SETTLED_S_MAX = 300
"""On a busy machine a thread takes minutes to run what waits, and the looks for it come more and more seldom."""

LOOK_S = 1.0

_ENVELOPE = re.compile(rf"([0-9]+) \S+ \S+(?: [a-z]+=\S+)*\n{re.escape(ORIGIN)}\n(.*)", re.DOTALL)


async def seen_by_codex(messages: int, dice: Random, show: Show, root: Path) -> tuple[Verdict, Counter[str]]:
    """What came of so many messages, and how many processes of each kind were killed."""
    async with serve_responses_api() as api, codex_home(root) as home:
        rig = ChannelRig(home, api)
        async with app_server(home) as owner:
            campaign = _Campaign(rig, owner, await owner.start_thread(home.project), dice, show)
            return await campaign.run(messages), campaign.kills.struck


class _Campaign:
    def __init__(self, rig: ChannelRig, owner: AppServer, thread: str, dice: Random, show: Show) -> None:
        self._rig = rig
        self._owner = owner
        self._thread = thread
        self._dice = dice
        self._sender_has_joined = False
        self._answered: set[int] = set()
        self.kills = RandomKills(dice, self._victims, show)
        rig.api.script = self._model

    async def run(self, messages: int) -> Verdict:
        await self._owner.run_turn(self._thread, JOIN)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._talk)
            async with anyio.create_task_group() as blows:
                await self._send_until(messages - 1, blows)
            await self._send_until(messages, None)
            verdict = await self._until_it_holds()
            tasks.cancel_scope.cancel()
        return verdict

    async def _send_until(self, answered: int, blows: TaskGroup | None) -> None:
        """Send from one server after another, until so many were accepted; without blows, in peace."""
        while len(self._answered) < answered:
            async with self._rig.peer(SENDER) as peer:
                self._sender_has_joined = True
                try:
                    while len(self._answered) < answered:
                        await self._until_few_wait()
                        if blows is not None:
                            blows.start_soon(self.kills.strike_now_and_then)
                        sent = await peer.send(self.kills.next_text(), ROLE)
                        self._answered.add(sent["id"])
                        await self.kills.pause()
                except MCPError:  # killed amid the send: it may be stored, and nobody was told
                    pass
                self._sender_has_joined = False

    async def _until_few_wait(self) -> None:
        while len(await self._owner.queued_keys(self._thread)) > WAIT_MAX:  # noqa: ASYNC110 - it tells nobody
            await anyio.sleep(POLL_S)

    async def _talk(self) -> None:
        """The person at the thread."""
        while True:
            if self._servers_below(self._owner.process_id) or self._dice.random() > RELOADS:
                await self._owner.run_turn(self._thread, "how is it going?")
            else:
                await self._owner.request("config/mcpServer/reload")
                await self._owner.run_turn(self._thread, JOIN)
            await anyio.sleep(TALK_S)

    def _model(self, request: ModelRequest) -> Reply:
        return Say("I can't") if request.step > STEPS_MAX else self._rig.script(request)

    def _victims(self) -> dict[str, Sequence[psutil.Process]]:
        return {
            "server of the thread": self._servers_below(self._owner.process_id),
            "server of the sender": self._servers_below(os.getpid()) if self._sender_has_joined else [],
            "app-server of either": self._rig.children(),
        }

    def _servers_below(self, pid: int | None) -> list[psutil.Process]:
        children = {child.pid for child in psutil.Process(pid).children()}
        return [server for server in self._rig.servers() if server.pid in children]

    async def _until_it_holds(self) -> Verdict:
        """Look until all agrees and nothing waits in the queue, or for as long as any look-up takes."""
        verdict = Verdict()
        with anyio.move_on_after(SETTLED_S_MAX):
            while True:
                queued = await self._owner.queued_keys(self._thread)
                verdict = judge(self._rig.deliveries(to=ROLE), self._showings(), self._answered)
                if verdict.holds and not queued:
                    break
                await anyio.sleep(LOOK_S)
        return verdict

    def _showings(self) -> list[Showing]:
        """Each message in the thread's requests, as often as the one request says that has it most often."""
        shown: Counter[tuple[str, str]] = Counter()
        for request in self._rig.api.requests.items:
            found = (_ENVELOPE.fullmatch(text) for text in request.user_texts)
            shown |= Counter((match[1], match[2]) for match in found if match)
        return [Showing(int(message_id), text) for message_id, text in shown.elements()]
