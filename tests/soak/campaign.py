"""A soak: sessions in several rooms that write to each other while everything is killed, until all is at rest."""

import os
import random
import signal
import sqlite3
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil

from channel.wakeups import bells_folder
from fakes.codex_app_server import write_executable
from fakes.codex_store import CodexHome
from fakes.codex_thread import new_thread
from harness_adapters.claude.session import transcript_path
from tests.soak.judge import Verdict, judge
from tests.soak.players import SERVER_MODULE, Player, Victim, processes_of, victims, words_of

ROOMS = ("north", "south")
EXPIRES_S = 12.0
"""The life of a Monitor; the real one's is half an hour."""

MONITOR_S_MAX = 1_800.0

PROBE_S = (1.0, 4.0)
KILL_S = (2.0, 6.0)
BUSY_S = 10.0
SETTLE_S_MAX = 180.0
"""What its owner took and did not show is uncertain after 30 s, and is looked for at growing intervals until then."""

ENDS_WITHIN_S = 10.0
SPARED = "claude-1"
"""Its session and its server live the whole time, so that what they hold can be measured at both ends."""

ROOT = Path(__file__).parents[2]


@dataclass
class Report:
    """What came of a soak of `seed`. `held`: open files and resident MiB of the spared server, at both ends."""

    seed: int
    trouble: str
    verdict: Verdict = field(default_factory=Verdict)
    struck: Counter[str] = field(default_factory=Counter)
    """What the trouble befell, by kind."""
    monitors: int = 0
    unanswered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Errors of `send`, by their text."""
    held: list[tuple[int, int]] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    bells: int = 0

    @property
    def holds(self) -> bool:
        verdict = self.verdict
        wrong = verdict.lost or verdict.twice or verdict.wrong or verdict.open or self.orphans
        return not (wrong or self.grew or (self.refused and self.trouble != "lock"))

    @property
    def grew(self) -> bool:
        """A server may open a log or cache a page; what grows with the work goes far beyond."""
        (files, mib), (files_after, mib_after) = self.held[0], self.held[-1]
        return files_after > files + 8 or mib_after > mib * 1.3 + 10


class Soak:
    """Made by `soak_world`."""

    def __init__(self, root: Path, seed: int, trouble: str) -> None:
        self.report = Report(seed, trouble)
        self._trouble = trouble
        self.root = root
        self.database = root / "channel" / "channel.db"
        self.home = CodexHome(root / ".codex")
        self.threads = {"codex-1": new_thread(self.home), "codex-2": new_thread(self.home)}
        self.sessions = {name: str(uuid.UUID(int=number)) for number, name in enumerate(("claude-1", "claude-2"), 1)}
        self.players = [*map(self._claude, self.sessions), *map(self._codex, self.threads)]
        self.chance = random.Random(seed)
        self._owed: dict[int, set[str]] = {}
        self._sent = 0

    async def run(self, seconds: float, say: Callable[[str], None]) -> None:
        """All that happens; the report is complete after it."""
        async with anyio.create_task_group() as tasks:
            for player in self.players:
                tasks.start_soon(player.run)
            for player in self.players:
                for room in ROOMS:
                    await player.until_called("join", room=room, name=player.name)
            say("all have joined")
            self._measure()
            for player in self.players:
                await self._probe(player)
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as troubles:
                    troubles.start_soon(self._probe_now_and_then)
                    troubles.start_soon(TROUBLES[self._trouble], self)
            say("no more trouble; until all is at rest")
            for player in self.players:
                await self._probe(player)
            await self._settle()
            self._measure()
            tasks.cancel_scope.cancel()
        self.report.monitors = sum(map(self._monitors_of, self.sessions))
        await self._leave_nothing()

    async def _probe_now_and_then(self) -> None:
        while True:
            await anyio.sleep(self.chance.uniform(*PROBE_S))
            await self._probe(self.chance.choice([self.spared] if self._trouble == "stop" else self.players))

    async def _probe(self, sender: Player) -> None:
        others = [player.name for player in self.players if player is not sender]
        to = None if self.chance.random() < 0.3 else self.chance.sample(others, self.chance.randint(1, len(others)))
        self._sent += 1
        text = f"probe {self._sent}\n" + self.chance.choice(TEXTS)
        answer = await sender.call("send", text=text, room=self.chance.choice(ROOMS), **({"to": to} if to else {}))
        if not answer:
            self.report.unanswered += 1
        elif "error" in answer:
            self.report.refused[answer["error"]] += 1
        else:
            self._owed[answer["answer"]["id"]] = set(answer["answer"]["to"])

    async def _settle(self) -> None:
        with anyio.move_on_after(SETTLE_S_MAX):
            while True:
                for player in self.players:
                    await player.until_called("join", room=ROOMS[0], name=player.name)
                self.report.verdict = self._judge()
                if not self.report.verdict.open:
                    return
                await anyio.sleep(2.0)

    def _judge(self) -> Verdict:
        transcripts = {name: self._transcript(name) for name in self.sessions}
        return judge(self.database, self.home, transcripts, self.threads, self._owed)

    async def _leave_nothing(self) -> None:
        """All sessions have ended, and all of ours below them ends too. A daemon of Codex's goes its own ways."""
        for victim in victims(self.players, self.root):
            if victim.kind == "daemon":
                victim.send(signal.SIGKILL)
        with anyio.move_on_after(ENDS_WITHIN_S):
            while processes_of(self.root):  # noqa: ASYNC110 - they are nobody's children
                await anyio.sleep(0.2)
        self.report.orphans = [" ".join(each.cmdline())[:150] for each in processes_of(self.root)]
        folder = bells_folder(self.database)
        self.report.bells = len(list(folder.iterdir())) if folder.exists() else 0

    @property
    def spared(self) -> Player:
        return next(player for player in self.players if player.name == SPARED)

    def victims(self) -> list[Victim]:
        """All that may be killed now: not the spared session, nor its server."""
        spared = {self.spared.pid, *(each.pid for each in self._spared_server())}
        return [victim for victim in victims(self.players, self.root) if victim.process.pid not in spared]

    def _spared_server(self) -> list[psutil.Process]:
        children = psutil.Process(self.spared.pid).children()
        return [child for child in children if SERVER_MODULE in words_of(child)]

    def _measure(self) -> None:
        for server in self._spared_server():
            self.report.held.append((server.num_fds(), server.memory_info().rss // 2**20))

    def _transcript(self, name: str) -> Path:
        return transcript_path(self.root / ".claude", self.sessions[name], str(self.root))

    def _monitors_of(self, name: str) -> int:
        """How many Monitors told something."""
        text = self._transcript(name).read_text(encoding="utf-8")
        return len({piece.partition("</task-id>")[0] for piece in text.split("<task-id>")[1:]})

    def _claude(self, name: str) -> Player:
        arguments = ["--home", str(self.root), "--session", self.sessions[name], "--db", str(self.database)]
        expires_s = MONITOR_S_MAX if self._trouble == "stop" else EXPIRES_S
        return self._player(name, "claude_session", [*arguments, "--expires", str(expires_s)])

    def _codex(self, name: str) -> Player:
        arguments = ["--codex-home", str(self.home.path), "--thread", self.threads[name], "--db", str(self.database)]
        return self._player(name, "codex_session", arguments + ["--daemon"] * (name == "codex-2"))

    def _player(self, name: str, module: str, arguments: list[str]) -> Player:
        environment = {
            "HOME": str(self.root),
            "CODEX_HOME": str(self.home.path),
            "PATH": f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        return Player(name, module, arguments, environment, self.root / f"{name}.log")


TEXTS = (
    "short",
    "with <markup> & more\n    indented\n\n",
    "99 north boss\n|not a message of its own",
    "ünïcode 🙂 \u202e",
    "a longer one\n" + "line of sixty characters, to make up a body of two flushes..\n" * 60,
)


async def kill(soak: Soak) -> None:
    """Something is killed every few seconds, each kind as often as any other."""
    while True:
        await anyio.sleep(soak.chance.uniform(*KILL_S))
        found = soak.victims()
        if not found:
            continue
        kind = soak.chance.choice(sorted({victim.kind for victim in found}))
        soak.chance.choice([victim for victim in found if victim.kind == kind]).send(signal.SIGKILL)
        soak.report.struck[kind] += 1


async def stop(soak: Soak) -> None:
    """All servers and streamers but the spared server are stopped the whole time, and then go on where they were."""
    stopped = [victim for victim in soak.victims() if victim.kind in ("server", "streamer")]
    try:
        for victim in stopped:
            victim.send(signal.SIGSTOP)
            soak.report.struck[victim.kind] += 1
        await anyio.sleep_forever()
    finally:
        for victim in stopped:
            victim.send(signal.SIGCONT)


async def lock(soak: Soak) -> None:
    """Another process holds the database locked the whole time."""
    with closing(sqlite3.connect(soak.database, isolation_level=None, timeout=BUSY_S)) as other:
        other.execute("BEGIN EXCLUSIVE")
        soak.report.struck["database, locked"] += 1
        try:
            await anyio.sleep_forever()
        finally:
            other.execute("ROLLBACK")


TROUBLES: Mapping[str, Callable[[Soak], Awaitable[None]]] = {"kill": kill, "stop": stop, "lock": lock}


@asynccontextmanager
async def soak_world(root: Path, seed: int, trouble: str) -> AsyncIterator[Soak]:
    """A machine of its own below `root`. `trouble`: one of TROUBLES."""
    (root / ".codex").mkdir()
    (root / "bin").mkdir()
    write_executable(root / "bin" / "codex")
    soak = Soak(root, seed, trouble)
    try:
        yield soak
    finally:
        soak.home.close()
        for left in processes_of(root):
            print(f"ended by the soak: {' '.join(left.cmdline())[:150]}", file=sys.stderr)
            left.kill()
