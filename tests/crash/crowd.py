"""Eight servers that send and eight streamers on one file, killed again and again: no id is lost, none is new twice.

    python -m tests.crash.crowd [--minutes 10] [--seed N] [--write]

The streamers' sessions have no transcript: what was in a dying one's hands is shown again, marked.
"""

import argparse
import os
import random
import signal
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio

from channel.membership import Caller
from fakes.monitor_host import MonitorHost
from fakes.monitor_rules import Notification
from fakes.recorder import Recorder
from harness_adapters.callers import OTHER_HARNESS
from harness_adapters.claude.addresses import keyed_address
from harness_adapters.claude.framing import Header, decode, whole_deliveries
from harness_adapters.commands.progress import Show
from tests import campaigns, reliability_page
from tests.another_session import LOOK_S, ROOM
from tests.crash.world import World, crash_world
from tests.crash.zygote import zygote

SENDERS = [f"sender-{number}" for number in range(8)]
READERS = [f"reader-{number}" for number in range(8)]

KILLS_A_SEND = 0.25
"""By count: on a slow machine a killer with a watch would let nobody get as far as to send."""

KILL_EACH_S = 3.0
"""On average, beside those: whatever is there, also while it starts."""

SEND_EACH_S = 0.02
"""A streamer shows no more than its Monitor takes, and all is to be shown soon after the last kill."""

SETTLED_S_MAX = 120.0

_DELIVERIES = """
SELECT d.message_id, d.state, r.name, m.text FROM deliveries d JOIN roles r ON r.role_id = d.role_id
JOIN messages m ON m.message_id = d.message_id WHERE r.name LIKE 'reader-%' ORDER BY d.message_id
"""
_IN_HAND = f"SELECT count(*) FROM ({_DELIVERIES}) WHERE state NOT IN ('accepted', 'seen')"


@dataclass
class Report:
    """What came of a crowd. `lost`, `twice` and `broken` must be empty."""

    seed: int
    kills: int = 0
    stored: int = 0
    repeated: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not (self.lost or self.twice or self.broken)


class Crowd:
    """All processes on one file."""

    def __init__(self, world: World, seed: int, show: Show = lambda _words: None) -> None:
        self._world = world
        self._show = show
        self._dice = Random(seed)
        self._alive: dict[str, int] = {}
        self._told: dict[str, list[Recorder[Notification]]] = {name: [] for name in READERS}
        """What each Monitor of a session told it: all of it, also what came as the streamer died."""
        self._answered: dict[int, str] = {}
        self._calm = anyio.Event()
        """Set once nobody sends and nothing is killed any more."""
        self._report = Report(seed)

    async def run(self, seconds: float) -> Report:
        """Let them live and die for so long, then let the readers come to rest, and judge."""
        own = self._world.view.channel.process.to_text()
        for name in READERS:
            caller = Caller(keyed_address(name), OTHER_HARNESS, own, own)
            await self._world.view.channel.membership.join(caller, ROOM, name, None)
        async with anyio.create_task_group() as readers:
            for name in READERS:
                readers.start_soon(self._read, name)
            async with anyio.create_task_group() as tasks:
                for name in SENDERS:
                    tasks.start_soon(self._send, name)
                await self._kill_for(seconds)
                self._calm.set()
            with anyio.move_on_after(SETTLED_S_MAX) as limit:
                await self._until_settled()
            readers.cancel_scope.cancel()
        if limit.cancelled_caught:
            self._report.broken.append(f"not at rest after {SETTLED_S_MAX:g} s")
        self._judge()
        return self._report

    async def _kill_for(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while True:
                await anyio.sleep(self._dice.expovariate(1 / KILL_EACH_S))
                self._kill_one()

    def _kill_one(self) -> None:
        if self._alive:
            name = self._dice.choice(sorted(self._alive))
            os.kill(self._alive.pop(name), signal.SIGKILL)
            self._report.kills += 1
            self._show(f"{self._report.kills} kills, {len(self._answered):,} messages …")

    async def _read(self, name: str) -> None:
        """A session's streamer, started again whenever it dies."""

        async def take(host: MonitorHost) -> None:
            self._told[name].append(host.notifications)

        while True:
            async with self._world.streamer(session=name, take=take) as streamer:
                while streamer.trace.pid is None:  # noqa: ASYNC110 - it tells nobody
                    await anyio.sleep(LOOK_S)
                self._alive[name] = streamer.trace.pid
                await streamer.host.wait_ended()
                self._alive.pop(name, None)

    async def _send(self, name: str) -> None:
        """A server that joins and sends until it dies, and another for the same role after it."""
        while not self._calm.is_set():
            async with self._world.server() as server:
                self._alive[name] = server.identity.pid
                await server.handshake()
                answer = await server.call("join", room=ROOM, name=name)
                while answer is not None and not self._calm.is_set():
                    reader = self._dice.choice(READERS)
                    answer = await server.call("send", text=f"{name} to {reader}\n  <{self._dice.random()}>", to=reader)
                    if answer is not None:
                        self._answered[answer["id"]] = reader
                        if self._dice.random() < KILLS_A_SEND:
                            self._kill_one()
                    await anyio.sleep(SEND_EACH_S)
                self._alive.pop(name, None)

    async def _until_settled(self) -> None:
        """All is written, and a Monitor told of it: it gathers lines for a moment before it tells its session."""
        while await self._in_hand() or await self._not_told():  # noqa: ASYNC110 - others change it
            await anyio.sleep(LOOK_S)

    async def _in_hand(self) -> int:
        return int((await self._world.view.channel.database.read(_IN_HAND))[0][0])

    async def _not_told(self) -> set[tuple[str, int]]:
        rows = await self._world.view.channel.database.read(_DELIVERIES)
        stored = {(name, message_id) for message_id, _, name, _ in rows}
        return stored - {(name, header.message_id) for name, header, _ in self._showings()}

    def _judge(self) -> None:
        report = self._report
        with closing(sqlite3.connect(self._world.database)) as file:
            rows = file.execute(_DELIVERIES).fetchall()
            [(integrity,)] = file.execute("PRAGMA integrity_check").fetchall()
        if integrity != "ok":
            report.broken.append(f"integrity_check: {integrity}")
        report.stored = len(rows)
        stored = {message_id: name for message_id, _, name, _ in rows}
        report.lost += [f"{each} was answered and not stored" for each in self._answered.items() - stored.items()]
        texts = {message_id: text for message_id, _, _, text in rows}
        shown: Counter[tuple[str, int, bool]] = Counter()
        for name, header, text in self._showings():
            shown[name, header.message_id, header.repeat] += 1
            report.repeated += header.repeat
            if text != texts.get(header.message_id, text):
                report.broken.append(f"{header.message_id} was shown to {name} with another text")
        for message_id, state, name, _ in rows:
            if not shown[name, message_id, False] + shown[name, message_id, True]:
                report.lost.append(f"{message_id} to {name} is {state}, and was never shown")
            if shown[name, message_id, False] > 1:
                report.twice.append(f"{message_id} was shown to {name} as new {shown[name, message_id, False]} times")

    def _showings(self) -> Iterator[tuple[str, Header, str]]:
        for name, told in self._told.items():
            lines = [line for host in told for each in host.items for line in each.text.split("\n")]
            for whole in whole_deliveries(lines):
                yield name, *decode(whole.lines)


async def run(seed: int, seconds: float) -> Report:
    """One crowd, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="agent-channel-crowd-") as folder:
        async with zygote() as starter, crash_world(Path(folder).resolve() / "world", starter) as world:
            with campaigns.progress() as (show, _):
                return await Crowd(world, seed, show).run(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.crowd", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--write", action="store_true", help="put the figures into RELIABILITY.md")
    chosen = parser.parse_args()
    report = campaigns.run(run, chosen.seed, chosen.minutes * 60)
    for each in (*report.lost, *report.twice, *report.broken):
        print(each)
    head = ["minutes", "kills", "messages", "repeated", "lost", "new twice", "integrity"]
    row = [f"{chosen.minutes:g}", report.kills, report.stored, report.repeated, len(report.lost), len(report.twice)]
    text = f"Seed {report.seed}; {reliability_page.machine()}.\n\n" + reliability_page.table(
        head, [[*row, "broken" if report.broken else "ok"]]
    )
    print(text)
    if chosen.write:
        reliability_page.put("crowd", text)
    return 0 if report.holds else 1


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
