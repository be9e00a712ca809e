"""One Claude Code process: its note, our server, a Monitor that expires and is armed again, and its transcript."""

import argparse
import json
import os
from itertools import count
from pathlib import Path

import anyio

from channel.clock import SystemClock
from fakes.monitor_host import MonitorHost, monitor
from fakes.monitor_rules import task_notification
from harness_adapters.callers import CLAUDE_CLIENT
from harness_adapters.claude.launch_command import launch_command
from harness_adapters.claude.session import transcript_path
from tests.soak.sessions import call_this_process, serving, take_orders
from waiters.processes import own_identity


class ClaudeSession:
    """The process's own share: what stands in its note and in its transcript."""

    def __init__(self, home: Path, session_id: str, database: Path) -> None:
        self._home = home
        self._config = home / ".claude"
        self._transcript = transcript_path(self._config, session_id, str(home))
        self._transcript.parent.mkdir(parents=True, exist_ok=True)
        self._transcript.touch()
        self._command = launch_command(database, home / "no other", None)
        self._write_note(session_id)

    async def monitor(self, expires_s: float) -> None:
        """Arm it; when it expires or its command ends, run the same command again, nothing else."""
        environment = {"HOME": str(self._home), "PATH": os.environ["PATH"], "CLAUDECODE": "1"}
        for number in count():
            async with (
                monitor(self._command, clock=SystemClock(), timeout_s=expires_s, environment=environment) as host,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(self._show, host, f"{os.getpid()}-{number}")
                await host.wait_ended()
                tasks.cancel_scope.cancel()

    async def _show(self, host: MonitorHost, task_id: str) -> None:
        """What Monitor tells is put before the model: it stands in the transcript."""
        while True:
            notification = await host.notifications.next()
            element = task_notification(task_id, "messages", notification)
            record = {"type": "user", "message": {"role": "user", "content": element}}
            with self._transcript.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def _write_note(self, session_id: str) -> None:
        own = own_identity()
        note = {"pid": own.pid, "sessionId": session_id, "procStart": str(own.start), "cwd": str(self._home)}
        folder = self._config / "sessions"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{own.pid}.json").write_text(json.dumps(note))


async def run(home: Path, session_id: str, database: Path, expires_s: float) -> None:
    session = ClaudeSession(home, session_id, database)
    async with serving(database, CLAUDE_CLIENT) as (server, tasks):
        tasks.start_soon(session.monitor, expires_s)
        await take_orders(server)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.claude_session")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--session", required=True, help="its id, the same after a resume")
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--expires", type=float, required=True, metavar="SECONDS", help="the life of a Monitor")
    chosen = parser.parse_args()
    call_this_process("claude")
    anyio.run(run, chosen.home, chosen.session, chosen.db, chosen.expires)


if __name__ == "__main__":
    main()
