"""What people, models and accidents do: the driver's choices beside whose turn it is."""

from collections.abc import Callable
from random import Random

from channel.deliveries import PENDING_LOOK_S
from channel.presence import LEASE_TTL_S
from tests.simulation.machine import Process
from tests.simulation.world import Agent, ClaudeAgent, CodexAgent, World

ROOMS = ("hall", "lab")

LONG_TEXT = "x" * 400 + "\n"
LONG_TEXTS = 0.04
BURST_MAX = 6

BEFORE_A_WRITE = ("next_pending", "record_hand_over", "record_hand_over (locked)")
STOPPED_S = LEASE_TTL_S + PENDING_LOOK_S
"""Then another server looks whether the waiter of what is pending lives, and takes its place."""

JUMPS_S = (5.0, 61.0, 130.0, 700.0)
WALL_JUMPS_MS = (-3_600_000, -90_000, 45_000, 7_200_000)

Deed = Callable[[], str]


class People:
    """Chooses by `rng` only. Each method does something and says what, or says that there was nothing to do."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        self.kills = 0
        self._texts = 0

    # --- what models and users want ---

    def use(self) -> str:
        """A tool call, most often a `send`."""
        agent = self._choose([agent for agent in self.world.agents if agent.can_call])
        if agent is None:
            return "nobody can call"
        if not agent.has_joined:
            agent.has_joined = True
            for room in ROOMS:
                agent.call("join", {"room": room, "name": agent.name})
            return f"{agent.name} calls join, twice"
        tools: list[Callable[[Agent], str]] = [self._join, self._rename, self._leave, self._join_as_another]
        tool = self.rng.choices([self._send, *tools], [84, 11, 2, 2, 1])[0]
        return f"{agent.name} calls {tool(agent)}"

    def _send(self, agent: Agent) -> str:
        count = self.rng.randint(1, BURST_MAX) if self.rng.random() < 0.2 else 1
        for _ in range(count):
            self._texts += 1
            text = f"text {self._texts} from {agent.name}"
            if self.rng.random() < LONG_TEXTS:
                text += "\n" + LONG_TEXT * self.rng.randint(5, 20)
            arguments = {"text": text, "room": self._room()}
            if self.rng.random() < 0.7:
                arguments["to"] = self.rng.choice([other.name for other in self.world.agents if other is not agent])
            agent.call("send", arguments)
        return f"send, {count}"

    def _join(self, agent: Agent) -> str:
        agent.call("join", {"room": self._room(), "name": agent.name})
        return "join"

    def _join_as_another(self, agent: Agent) -> str:
        other = self.rng.choice(self.world.agents)
        agent.call("join", {"room": self._room(), "name": other.name})
        return f"join as {other.name}"

    def _rename(self, agent: Agent) -> str:
        agent.call("rename", {"name": self.rng.choice([agent.name, f"{agent.name}-2"]), "room": self._room()})
        return "rename"

    def _leave(self, agent: Agent) -> str:
        agent.call("leave", {"room": self._room()})
        return "leave"

    def _room(self) -> str:
        return self.rng.choice(ROOMS)

    # --- accidents ---

    def harm(self) -> str:
        """One accident."""
        world = self.world
        deeds: list[tuple[int, Deed]] = [
            (10, lambda: self._kill("server")),
            (10, lambda: self._kill("streamer")),
            (10, self._kill_a_writer),
            (14, self._stop_a_writer),
            (3, self._kill_harness),
            (6, self._kill_app_server),
            (8, self._stop),
            (4, self._close_server),
            (10, self._expire_monitor),
            (3, self._arm_twice),
            (3, self._lose_event),
            (2, self._clear),
            (3, self._set_wall_clock),
            (6, self._let_time_pass),
            (12, self._hang_app_server),
            (2, self._forbid_app_servers),
            (4, self._close_thread),
            (2, self._archive),
            (1, self._delete_row),
            (1, self._edit_row),
            (2, self._refuse_row),
            (2, self._run_exec),
            (1, self._reboot),
        ]
        deed = self.rng.choices([each for _, each in deeds], [weight for weight, _ in deeds])[0]
        said = deed()
        world.tick()
        return said

    def _kill(self, kind: str) -> str:
        return self._killed(self._choose(self.world.machine.living(kind)))

    def _killed(self, process: Process | None) -> str:
        if process is None:
            return "nothing to kill"
        self.kills += 1
        process.kill()
        return f"SIGKILL to {process.name}"

    def _kill_a_writer(self) -> str:
        """One of those who stand before or after a write, which a random victim seldom does."""
        writers = [
            each.process for each in self.world.machine.parked if "writes to" in each.what or "written" in each.what
        ]
        process = self._choose(writers)
        return self._killed(process)

    def _stop_a_writer(self) -> str:
        """For longer than its lease, at a moment when it is about to decide or to write."""
        writers = [each.process for each in self.world.machine.parked if each.what in BEFORE_A_WRITE]
        process = self._choose(writers)
        if process is None:
            return "nobody writes"
        process.stopped = True
        self.world.loop.move_time(STOPPED_S)
        return f"SIGSTOP to {process.name}, and {STOPPED_S} s pass at once"

    def _kill_harness(self) -> str:
        agent = self._choose([agent for agent in self.world.agents if agent.is_up])
        if agent is None:
            return "nothing to kill"
        self.kills += 1
        agent.end()
        return f"SIGKILL to the harness of {agent.name}"

    def _kill_app_server(self) -> str:
        server = self._choose(self.world.codex.app_servers)
        if server is None:
            return "no app-server to kill"
        self.kills += 1
        server.die()
        return f"SIGKILL to {server.name}"

    def _stop(self) -> str:
        process = self._choose([*self.world.machine.living("server"), *self.world.machine.living("streamer")])
        if process is None:
            return "nothing to stop"
        process.stopped = True
        return f"SIGSTOP to {process.name}"

    def _close_server(self) -> str:
        agent = self._choose([agent for agent in self.world.agents if agent.can_call])
        if agent is None:
            return "no server to close"
        assert agent.server is not None
        agent.server.end_input()
        return f"the server of {agent.name} sees the end of its input"

    def _expire_monitor(self) -> str:
        agent = self._choose([agent for agent in self.world.claudes if agent.is_armed])
        if agent is None:
            return "no Monitor to expire"
        for monitor in agent.session.monitors:
            monitor.expire()
        return f"the Monitor of {agent.name} expires"

    def _arm_twice(self) -> str:
        agent = self._choose([agent for agent in self.world.claudes if agent.is_armed and agent.is_up])
        if agent is None:
            return "no Monitor is armed"
        agent.arm()
        return f"{agent.name} arms a second Monitor"

    def _lose_event(self) -> str:
        agent = self.rng.choice(self.world.claudes)
        agent.session.loses_next_event = True
        return f"{agent.name} will lose an event"

    def _clear(self) -> str:
        agent = self.rng.choice(self.world.claudes)
        agent.session.clear()
        return f"{agent.name}: /clear"

    def _set_wall_clock(self) -> str:
        by_ms = self.rng.choice(WALL_JUMPS_MS)
        self.world.machine.set_wall_clock(by_ms)
        return f"the wall clock is set by {by_ms // 1_000} s"

    def _let_time_pass(self) -> str:
        seconds = self.rng.choice(JUMPS_S)
        self.world.loop.move_time(seconds)
        return f"{seconds:g} s pass at once"

    def _hang_app_server(self) -> str:
        """With an add in hand if there is one that has."""
        servers = self.world.codex.app_servers
        server = self._choose([each for each in servers if each.holds_an_add] or servers)
        if server is None:
            return "no app-server to hang"
        server.hang(self.rng)
        return f"{server.name} hangs"

    def _forbid_app_servers(self) -> str:
        self.world.codex.can_be_started = False
        return "no app-server can be started"

    def _close_thread(self) -> str:
        agent = self._choose([agent for agent in self.world.codexes if agent.is_up])
        if agent is None:
            return "no thread to close"
        agent.end()
        return f"the session of {agent.name} is closed"

    def _archive(self) -> str:
        agent = self.rng.choice(self.world.codexes)
        self.world.codex.home.set_archived(agent.thread.thread_id, True)
        return f"the thread of {agent.name} is archived"

    def _delete_row(self) -> str:
        agent = self.rng.choice(self.world.codexes)
        row = self._choose(self.world.codex.home.rows(agent.thread.thread_id))
        if row is None:
            return "no row to delete"
        self.world.codex.home.delete_row(agent.thread.thread_id, row.id)
        return f"a row of {agent.name} is deleted"

    def _edit_row(self) -> str:
        agent = self.rng.choice(self.world.codexes)
        row = self._choose(self.world.codex.home.rows(agent.thread.thread_id))
        if row is None:
            return "no row to edit"
        agent.thread.edit(row)
        return f"a row of {agent.name} is edited"

    def _refuse_row(self) -> str:
        agent = self.rng.choice(self.world.codexes)
        return f"a hook of {agent.name} refuses" if agent.thread.refuse() else "no row to refuse"

    def _run_exec(self) -> str:
        agent = self.rng.choice(self.world.codexes)
        agent.thread.is_exec = True
        return f"codex exec runs the thread of {agent.name}"

    def _reboot(self) -> str:
        self.kills += len([process for process in self.world.machine.processes if not process.dead])
        for agent in self.world.agents:
            agent.end()
        for server in self.world.codex.app_servers:
            server.die()
        self.world.machine.reboot()
        return "the machine is started anew"

    # --- and their mending ---

    def mend(self) -> str:
        """Undo one accident, if there is something to mend."""
        deed = self._choose(self.damage())
        return deed() if deed is not None else "all is well"

    def damage(self) -> list[Deed]:
        """What could be mended, in a fixed order."""
        found: list[Deed] = []
        for process in self.world.machine.processes:
            if process.stopped:
                found.append(_doing(f"SIGCONT to {process.name}", process, "stopped", False))
        for agent in self.world.agents:
            if not agent.is_up or agent.server is None or agent.server.process.dead:
                found.append(lambda agent=agent: self._start(agent))  # type: ignore[misc]
        for claude in self.world.claudes:
            if claude.wants_to_arm:
                found.append(lambda agent=claude: self._arm(agent))  # type: ignore[misc]
        for codex in self.world.codexes:
            if self.world.codex.home.thread(codex.thread.thread_id).archived:
                found.append(lambda agent=codex: self._unarchive(agent))  # type: ignore[misc]
            if codex.thread.is_exec:
                found.append(_doing(f"codex exec of {codex.name} has ended", codex.thread, "is_exec", False))
        for server in self.world.codex.app_servers:
            if server.hangs and self.world.loop.time() >= server.hangs_until_s:
                found.append(_doing(f"{server.name} goes on", server, "hangs", False))
        if not self.world.codex.can_be_started:
            found.append(_doing("app-servers can be started", self.world.codex, "can_be_started", True))
        return found

    def _start(self, agent: Agent) -> str:
        agent.start()
        return f"the server of {agent.name} starts"

    def _arm(self, agent: ClaudeAgent) -> str:
        agent.arm()
        return f"{agent.name} arms its Monitor"

    def _unarchive(self, agent: CodexAgent) -> str:
        self.world.codex.home.set_archived(agent.thread.thread_id, False)
        return f"the thread of {agent.name} is unarchived"

    def _choose(self, among: list):  # type: ignore[no-untyped-def, type-arg]
        return self.rng.choice(among) if among else None


def _doing(said: str, thing: object, attribute: str, value: bool) -> Deed:
    def deed() -> str:
        setattr(thing, attribute, value)
        return said

    return deed
