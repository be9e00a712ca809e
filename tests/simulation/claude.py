"""Claude Code as a simulated receiver: sessions, their Monitor, and the transcript that they write.

What Monitor does to lines is `fakes/monitor_rules.py`; the transcript's records are those of the real one
(facts/claude-code.md, section 5). A session shows what is in its queue of events when the driver lets it.
"""

import json
import re
from pathlib import Path
from random import Random

import anyio

from fakes.monitor_rules import EventStream, Notification, task_notification
from harness_adapters.claude.framing import parse_header, whole_deliveries
from harness_adapters.claude.marking import unmarked_text
from harness_adapters.claude.pipe import OutputPipe, ReaderGone
from tests.simulation.machine import Machine, Move, Process, turn
from tests.simulation.truth import Showing, Truth

WRITE_BYTES = 4096
"""The pipe's own unit (PIPE_BUF): more than that may be torn by a death."""

SIGTERM_TO_KILL_S = 1.5
_LAST_PART = re.compile(r" part=(\d+)/(\d+)")


class Monitor:
    """One run of the streamer's command. `killed_at_s`: when the SIGKILL comes that follows a SIGTERM."""

    def __init__(self, session: "ClaudeSession", streamer: Process, task_id: str, machine: Machine) -> None:
        self.session = session
        self.streamer = streamer
        self.task_id = task_id
        self.unread = b""
        self.headers_read: set[int] = set()
        """The messages of which the last part's header was read."""
        self.has_reader = True
        self.killed_at_s: float | None = None
        self.sigterm = anyio.Event()
        self.changed = anyio.Event()
        self._machine = machine
        self._rules = EventStream(machine.loop.time())
        self._suppressed = 0

    def write(self, data: bytes) -> None:
        self.unread += data

    async def move(self, _: Random) -> str:
        self.read()
        return "reads"

    def read(self) -> None:
        """Take what is in the pipe."""
        data, self.unread = self.unread, b""
        for line in data.decode(errors="replace").split("\n"):
            header = parse_header(line)
            if header is not None and header.part == header.parts:
                self.headers_read.add(header.message_id)
        if self.killed_at_s is None:
            self.tick()
            self._rules.feed(data, self._machine.loop.time())
        self.wake()

    def tick(self) -> None:
        """Tell the session of a window that has closed."""
        due_at = self._rules.due_at()
        if due_at is not None and due_at <= self._machine.loop.time() and self.killed_at_s is None:
            self._tell(self._rules.collect(due_at))
        if self.killed_at_s is not None and self.killed_at_s <= self._machine.loop.time() and not self.streamer.dead:
            self.streamer.kill()

    def expire(self) -> None:
        """Its time is over: SIGTERM, and the session is told nothing more."""
        self._tell(self._rules.expire(1800, self._machine.loop.time()))
        self.killed_at_s = self._machine.loop.time() + SIGTERM_TO_KILL_S
        self.sigterm.set()

    def streamer_ended(self) -> None:
        """The pipe's other end is closed: what was in it is read, and rides in the notice of the end."""
        if self.has_reader:
            self.read()
            if self.killed_at_s is None:
                self._tell(self._rules.end(0, self._machine.loop.time()))
        self.has_reader = False
        self.session.monitors.remove(self)

    def wake(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    def _tell(self, notifications: list[Notification]) -> None:
        lost = self._rules.events_suppressed - self._suppressed
        self._suppressed += lost
        self.session.suppressed(lost)
        for each in notifications:
            self.session.enqueue(task_notification(self.task_id, "room", each), each.text, self.task_id)


class SimulatedPipe(OutputPipe):
    """The streamer's stdout."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), WRITE_BYTES):
            await turn("writes to Monitor")
            if not self._monitor.has_reader:
                raise ReaderGone("the reader of the pipe is gone")
            self._monitor.write(data[start : start + WRITE_BYTES])

    async def wait_taken(self) -> None:
        while self._monitor.unread and self._monitor.has_reader:
            await self._monitor.changed.wait()
        await turn("looks whether Monitor took it")
        if not self._monitor.has_reader:
            raise ReaderGone("the reader of the pipe is gone")

    def unread_bytes(self) -> int | None:
        return len(self._monitor.unread)

    def is_dead(self) -> bool:
        return not self._monitor.has_reader

    async def wait_dead(self) -> None:
        while self._monitor.has_reader:
            await self._monitor.changed.wait()


class ClaudeSession:
    """One conversation, in one process after another. `loses`: the next event is lost within Claude Code."""

    def __init__(self, machine: Machine, name: str, folder: Path | None, truth: Truth) -> None:
        self.name = name
        self.session_id = f"session-of-{name}"
        self.monitors: list[Monitor] = []
        self.loses_next_event = False
        self.queue: list[tuple[str, str, str]] = []
        self._machine = machine
        self._folder = folder
        self._truth = truth
        self._transcripts = 1
        self._monitors = 0
        self._lines_of_task: dict[str, list[str]] = {}

    @property
    def has_transcript(self) -> bool:
        return self._folder is not None

    def transcript(self) -> Path | None:
        return None if self._folder is None else self._folder / f"{self.name}-{self._transcripts}.jsonl"

    def new_monitor(self, streamer: Process) -> Monitor:
        self._monitors += 1
        monitor = Monitor(self, streamer, f"{self.name}{self._monitors}", self._machine)
        self.monitors.append(monitor)
        streamer.at_death.append(monitor.streamer_ended)
        return monitor

    def tick(self) -> None:
        for monitor in list(self.monitors):
            monitor.tick()

    def clear(self) -> None:
        """/clear: the next records go to another transcript."""
        self._transcripts += 1

    def suppressed(self, events: int) -> None:
        self._truth.suppressed += events

    def enqueue(self, notification: str, text: str, task_id: str) -> None:
        """An event enters the session's queue, or is lost on the way."""
        if self.loses_next_event:
            self.loses_next_event = False
            return
        self._record({"type": "queue-operation", "operation": "enqueue", "content": notification})
        self.queue.append((notification, text, task_id))

    async def show(self, rng: Random) -> str:
        """Put the oldest event before the model: it wakes the session, or comes in the middle of a turn."""
        notification, text, task_id = self.queue.pop(0)
        if rng.random() < 0.5:
            attachment = {"type": "queued_command", "prompt": notification}
            self._record({"type": "attachment", "attachment": attachment})
        else:
            self._record({"type": "user", "message": {"role": "user", "content": notification}})
        self._note_shown(text, task_id)
        return f"shows {text.partition(chr(10))[0][:40]!r}"

    def moves(self) -> list[Move]:
        found = [Move(f"{self.name}'s Monitor", monitor.move) for monitor in self.monitors if monitor.unread]
        return [*found, Move(self.name, self.show)] if self.queue else found

    def die(self) -> None:
        """Its process is killed, and all below it; what was not shown is gone with it."""
        self.loses_next_event = False
        for monitor in list(self.monitors):
            monitor.has_reader = False
            monitor.streamer.kill()
        self.queue.clear()

    def _note_shown(self, text: str, task_id: str) -> None:
        lines = self._lines_of_task.setdefault(task_id, [])
        before = len(list(whole_deliveries(lines)))
        lines += text.split("\n")
        for whole in list(whole_deliveries(lines))[before:]:
            body = None if whole.shortened else unmarked_text(_body(whole.lines))
            self._truth.note_shown(self.name, Showing(whole.header.message_id, whole.header.repeat), body)
        if len(lines) > 2_000:
            del lines[:-500]

    def _record(self, record: dict[str, object]) -> None:
        path = self.transcript()
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _body(lines: tuple[str, ...]) -> list[str]:
    return [line for line in lines if line[:1] in ("|", "…")]
