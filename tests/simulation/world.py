"""The simulated people and harnesses: two Codex threads and three Claude Code sessions that meet in two rooms."""

from pathlib import Path

from anyio.abc import TaskGroup

from channel.errors import ChannelError
from channel.membership import Caller
from fakes.clock import FakeIds
from fakes.codex_thread import new_thread
from harness_adapters.claude.addresses import claude_address
from harness_adapters.codex.addresses import address_of
from tests.simulation.checks import Checker, Destination
from tests.simulation.claude import ClaudeSession
from tests.simulation.codex import Codex, CodexThread, WatchedHome
from tests.simulation.loop import SimulatedLoop
from tests.simulation.machine import Machine, Move, Process
from tests.simulation.programs import Answer, Server, Site, Streamer
from tests.simulation.truth import Truth

ARMED_AGAIN_S = 2.0
"""A model needs so long to run a command again."""


class Agent:
    """One harness session with its server: common to both harnesses. Made by a `World`."""

    name: str
    harness: Process | None = None
    server: Server | None = None
    has_joined = False
    greeted: Server | None = None
    """The server through which it has said that it is back."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name

    def caller(self, server: Process) -> Caller:
        raise NotImplementedError

    def start(self) -> None:
        """The harness's process, and its server."""
        machine = self.world.machine
        if self.harness is None or self.harness.dead:
            self.harness = machine.new_process("harness", f"{self.name}-harness")
            self.world.destinations[self.address] = self.destination(gone=False)
        process = machine.new_process("server", f"{self.name}-server")
        self.server = Server(self.world.site, process, self.caller(process))
        self.world.tasks.start_soon(process.run, self.server.main)

    def end(self) -> None:
        """SIGKILL of the harness and all below it."""
        if self.server is not None and not self.server.process.dead:
            self.server.process.kill()
        if self.harness is not None and not self.harness.dead:
            self.harness.kill()
            self.world.destinations[self.address] = self.destination(gone=self.address.startswith("claude:"))

    @property
    def address(self) -> str:
        raise NotImplementedError

    def destination(self, *, gone: bool) -> Destination:
        raise NotImplementedError

    @property
    def is_up(self) -> bool:
        return self.harness is not None and not self.harness.dead

    @property
    def can_call(self) -> bool:
        return self.server is not None and self.server.is_ready and not self.server.process.stopped

    def call(self, tool: str, arguments: Answer) -> None:
        assert self.server is not None
        self.world.calls += 1
        self.server.call(tool, arguments, self.world.note_answer)


class CodexAgent(Agent):
    def __init__(self, world: "World", name: str, thread: CodexThread) -> None:
        super().__init__(world, name)
        self.thread = thread

    def start(self) -> None:
        if self.thread.owner is None:
            self.thread.load()
        super().start()

    def end(self) -> None:
        if self.thread.owner is not None:
            self.thread.unload()
        super().end()

    @property
    def address(self) -> str:
        return address_of(self.thread.thread_id, self.world.codex.home.path)

    def destination(self, *, gone: bool) -> Destination:
        return Destination(self.name, self.thread.thread_id, True, gone)

    def caller(self, server: Process) -> Caller:
        assert self.harness is not None
        home = str(self.world.codex.home.path)
        return Caller(
            self.address, "codex", self.harness.text, server.text, thread_id=self.thread.thread_id, codex_home=home
        )


class ClaudeAgent(Agent):
    def __init__(self, world: "World", name: str, session: ClaudeSession) -> None:
        super().__init__(world, name)
        self.session = session
        self._armed_at_s = -ARMED_AGAIN_S

    def end(self) -> None:
        self.session.die()
        super().end()

    def arm(self) -> None:
        """The session runs the streamer's command in Monitor."""
        machine = self.world.machine
        self._armed_at_s = machine.loop.time()
        process = machine.new_process("streamer", f"{self.name}-streamer")
        monitor = self.session.new_monitor(process)
        streamer = Streamer(self.world.site, process, monitor, self.address)
        self.world.tasks.start_soon(process.run, streamer.main)

    @property
    def wants_to_arm(self) -> bool:
        rests = self.world.loop.time() < self._armed_at_s + ARMED_AGAIN_S
        return self.is_up and not self.is_armed and not rests

    @property
    def is_armed(self) -> bool:
        """A Monitor runs whose time is not over."""
        return any(monitor.killed_at_s is None for monitor in self.session.monitors)

    @property
    def address(self) -> str:
        assert self.harness is not None
        return claude_address(self.harness.identity)

    def destination(self, *, gone: bool) -> Destination:
        return Destination(self.name, None, self.session.has_transcript, gone)

    def caller(self, server: Process) -> Caller:
        assert self.harness is not None
        return Caller(self.address, "claude", self.harness.text, server.text, session_id=self.session.session_id)


class World:
    """Everything there is. Made by `new_world`."""

    def __init__(self, loop: SimulatedLoop, folder: Path, tasks: TaskGroup) -> None:
        self.loop = loop
        self.tasks = tasks
        self.truth = Truth()
        self.machine = Machine(loop)
        self.destinations: dict[str, Destination] = {}
        self.answers: list[Answer] = []
        self.calls = 0
        self.refusals = 0
        (folder / "codex").mkdir()
        home = WatchedHome(folder / "codex", self.machine, self.truth)
        self.codex = Codex(home, self.truth, tasks)
        path = folder / "channel.db"
        self.checker = Checker(path, self.truth, self.destinations)
        self.site = Site(self.machine, path, FakeIds(), self.checker, self.codex)
        tim = self.codex.add_thread("tim", new_thread(home))
        tom = self.codex.add_thread("tom", new_thread(home, history_mode="legacy"))
        self.codexes = [CodexAgent(self, "tim", tim), CodexAgent(self, "tom", tom)]
        self.claudes = [
            ClaudeAgent(self, "ann", ClaudeSession(self.machine, "ann", folder, self.truth)),
            ClaudeAgent(self, "bob", ClaudeSession(self.machine, "bob", folder, self.truth)),
            ClaudeAgent(self, "cid", ClaudeSession(self.machine, "cid", None, self.truth)),
        ]

    @property
    def agents(self) -> list[Agent]:
        return [*self.codexes, *self.claudes]

    def note_answer(self, answer: Answer | ChannelError) -> None:
        if isinstance(answer, ChannelError):
            self.refusals += 1
        elif "id" in answer:
            self.answers.append(answer)

    def moves(self) -> list[Move]:
        """What could happen next, in a fixed order: a turn of a process of ours, or a move of a harness."""
        turns = [Move(each.process.name, each.go) for each in self.machine.ready()]
        sessions = [move for agent in self.claudes for move in agent.session.moves()]
        return [*turns, *self.codex.moves(), *sessions]

    def tick(self) -> None:
        """Time has passed, or something has ended."""
        for agent in self.claudes:
            agent.session.tick()
        self.codex.bury()

    def broken(self) -> list[str]:
        """Every promise that was broken so far, and every process that ended by a fault of ours."""
        return [*self.truth.broken, *self.machine.crashes]

    def close(self) -> None:
        self.checker.close()
        self.codex.home.close()
