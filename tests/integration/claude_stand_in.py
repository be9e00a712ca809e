"""The test's own process in the place of Claude Code: its note on itself, its transcript, its Monitors.

    async with claude_stand_in(tmp_path) as claude:
        await claude.join("bob")
        async with claude.monitor() as host:
            await claude.peer.send("hello", "bob")
            await claude.until_shown(1)

The streamers are real processes, found their session by the note, and look for evidence in the transcript.
"""

import json
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from channel.clock import SystemClock
from channel.membership import Caller
from fakes.monitor_host import MonitorHost, monitor
from fakes.monitor_rules import Notification, task_notification
from fakes.recorder import Recorder
from harness_adapters.callers import CLAUDE_HARNESS
from harness_adapters.claude.addresses import claude_address
from harness_adapters.claude.framing import Header, decode, whole_deliveries
from harness_adapters.claude.launch_command import launch_command, plugin_monitor_command
from harness_adapters.claude.session import transcript_path
from tests.another_session import ROOM, AnotherSession, ChannelView, open_view
from waiters.processes import ProcessIdentity, own_identity

SESSION_ID = "11111111-2222-3333-4444-555555555555"
PEER = "peer"


class ClaudeStandIn:
    """One Claude Code session whose process is the test's. Made by `claude_stand_in`."""

    def __init__(self, root: Path, channel: ChannelView) -> None:
        self.channel = channel
        self.peer: AnotherSession = channel.session(PEER)
        self.address = claude_address(own_identity())
        self.database = channel.channel.database.path
        """What the command names: another file than the channel's where a test says so."""
        self.records_what_is_shown = True
        """False: a session that never gets round to showing an event to its model."""
        self.notifications: Recorder[Notification] = Recorder()
        """What the Monitors told the session, in order."""
        self._root = root
        self._config = root / "claude"
        self._lines: list[str] = []
        process = own_identity().to_text()
        self._session = channel.session_of(
            Caller(self.address, CLAUDE_HARNESS, process, process, session_id=SESSION_ID)
        )
        _write_note(self._config)
        self._transcript = transcript_path(self._config, SESSION_ID, str(root))
        self._transcript.parent.mkdir(parents=True)
        self._transcript.touch()

    async def join(self, name: str, room: str = ROOM) -> dict[str, Any]:
        """What `join` answers to the session."""
        return await self._session.join(name, room)

    async def send(self, text: str, to: str) -> dict[str, Any]:
        """What `send` answers to the session."""
        return await self._session.send(text, to)

    async def leave(self) -> None:
        await self._session.leave()

    @property
    def environment(self) -> dict[str, str]:
        """That of what Claude Code starts."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._root),
            "CLAUDE_CONFIG_DIR": str(self._config),
            "CLAUDECODE": "1",
            "CLAUDE_PID": str(os.getpid()),
        }

    @property
    def command(self) -> str:
        """The command that `join` returns to this session."""
        return launch_command(self.database, self._root / "no other", None)

    @property
    def plugin_command(self) -> str:
        """The command of the plugin's monitor."""
        return plugin_monitor_command(self.database, self._root / "no other")

    @asynccontextmanager
    async def monitor(self, command: str | None = None) -> AsyncIterator[MonitorHost]:
        """Run a command, else `self.command`, in a Monitor; what it tells is recorded in the transcript."""
        async with monitor(command or self.command, clock=SystemClock(), environment=self.environment) as host:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.take_notifications, host)
                yield host
                tasks.cancel_scope.cancel()

    async def start(self, stdout: int) -> Process:
        """Run the command by itself, its stdout being a descriptor of the test's."""
        return await anyio.open_process(
            shlex.split(self.command), stdin=None, stdout=stdout, stderr=None, env=self.environment
        )

    async def until_active(self) -> int:
        """The pid of the streamer that serves the session, once one does."""
        await self.channel.until_active(self.address)
        waiter = await self.channel.waiter(self.address)
        assert waiter is not None
        return ProcessIdentity.from_text(waiter["process"]).pid

    async def until_shown(self, count: int) -> list[tuple[Header, str]]:
        """The messages that Monitors showed whole so far, once there are `count`, with their exact texts."""
        await self.notifications.wait_for(lambda _: len(self.shown) >= count)
        return self.shown

    @property
    def shown(self) -> list[tuple[Header, str]]:
        return [decode(whole.lines) for whole in whole_deliveries(self._lines)]

    @property
    def said(self) -> list[str]:
        """The lines in which streamers spoke for themselves."""
        return [line for line in self._lines if line.startswith("agent-channel: ")]

    def record(self, text: str) -> None:
        """An event of Monitor stands in the transcript as put before the model."""
        element = task_notification("b1", "messages", Notification("event", text))
        record = {"type": "user", "message": {"role": "user", "content": element}}
        with self._transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    async def take_notifications(self, host: MonitorHost) -> None:
        """Take what a Monitor tells the session, as long as it tells anything."""
        while True:
            notification = await host.notifications.next()
            if notification.text:
                self._lines += notification.text.split("\n")
                if self.records_what_is_shown:
                    self.record(notification.text)
            self.notifications.add(notification)


@asynccontextmanager
async def claude_stand_in(root: Path) -> AsyncIterator[ClaudeStandIn]:
    """A channel below `root`, PEER in its room, and this process as a Claude Code that has not joined yet."""
    async with open_view(root / "channel" / "channel.db") as channel:
        claude = ClaudeStandIn(root, channel)
        await claude.peer.join(PEER)
        yield claude


def _write_note(config: Path) -> None:
    identity = own_identity()
    note = {"pid": identity.pid, "sessionId": SESSION_ID, "procStart": str(identity.start), "cwd": str(config.parent)}
    sessions = config / "sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{identity.pid}.json").write_text(json.dumps(note))
