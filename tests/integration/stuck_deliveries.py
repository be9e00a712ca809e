"""A channel file with deliveries in several states, some of them stuck, and our command line on it.

The builder is a Codex thread of a fake Codex that knows nothing of message 2: its add was lost. The planner is
a Claude Code session that is gone, with a transcript. All was sent 15 hours ago.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from channel.clock import SystemClock
from channel.delivery_states import Event, Policy
from channel.membership import Caller
from channel.messages import HandOver, Outcome
from fakes.clock import FakeClock
from fakes.codex_app_server import write_executable
from fakes.codex_store import CodexHome, text_input
from fakes.codex_thread import ThreadOwner, new_thread
from harness_adapters.claude.framing import Header, encode
from harness_adapters.codex.envelope import envelope
from harness_adapters.composition import Channel, open_channel
from tests.codex_sessions import thread_caller
from waiters.processes import own_identity

COMMAND_LINE = [sys.executable, "-I", "-m", "harness_adapters.cli"]
AGE_MS = 15 * 3_600_000
RUN_S = 60

TEXT = "Split parse() in two:\n\tone reads, one checks."


@dataclass
class Stuck:
    """The file, and what stands in for the harnesses."""

    database: Path
    home: CodexHome
    thread: str
    transcript: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Our command line, as a person has it in a shell."""
        return subprocess.run(
            [*COMMAND_LINE, "--db", str(self.database), *arguments],
            env={"HOME": str(self.database.parent.parent), "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )

    def done(self, *arguments: str) -> str:
        """What it prints; it must succeed and complain of nothing."""
        run = self.run(*arguments)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, *arguments: str) -> str:
        """Why it does not do it."""
        run = self.run(*arguments)
        assert (run.returncode, run.stdout) == (1, "")
        return run.stderr

    def state(self, delivery_id: int) -> str:
        return str(self.json("deliveries", "show", str(delivery_id))["state"])

    def show_in_thread(self, key: str, text: str) -> None:
        """The thread runs a message that bears a key."""
        self.home.add_row(self.thread, text_input(text), key)
        with ThreadOwner(self.home, self.thread) as owner:
            owner.run_row()


async def stuck_deliveries(root: Path) -> Stuck:
    """Make it under `root`:

    delivery 1 (message 1) to builder: seen; 2 (message 2) to builder: uncertain, and found nowhere since;
    3 (message 3) to reviewer, who is offline: pending; 4 (message 4) to planner: accepted by its Monitor.
    """
    codex_home = root / ".codex"
    codex_home.mkdir()
    home = CodexHome(codex_home)
    thread = new_thread(home)
    transcript = root / "transcript.jsonl"
    transcript.touch()
    stuck = Stuck(root / ".agent-channel" / "channel.db", home, thread, transcript)
    clock = FakeClock()
    clock.set_wall_ms(SystemClock().now_ms() - AGE_MS)
    async with open_channel(stuck.database, durable=False, clock=clock) as channel:
        builder = thread_caller(channel.process.to_text(), thread, codex_home, write_executable(root / "codex"))
        process = own_identity().to_text()
        planner, reviewer = (Caller(f"session:{name}", "other", process, process) for name in ("planner", "reviewer"))
        for caller, name in ((planner, "planner"), (builder, "builder"), (reviewer, "reviewer")):
            await channel.membership.join(caller, "hall", name, None)
        await _give(channel, planner, builder, "Start with the parser.", Event.KEY_IN_ITEMS)
        lost = await _give(channel, planner, builder, TEXT, Event.ANSWER_LOST, "the app-server ended unasked")
        await channel.deliveries.record([Outcome(lost, Event.KEY_IN_NEITHER)])
        await channel.sending.send(planner.address, "Please review.", ["reviewer"], None)
        place = json.dumps({"transcript": str(transcript), "offset": 0})
        await _give(channel, builder, planner, "Done.", Event.TAKEN, policy=Policy.MONITOR, place=place)
    return stuck


def one_more_session(channel: Channel) -> Caller:
    """Of a harness that agent-channel does not know."""
    process = channel.process.to_text()
    return Caller("session:new", "other", process, process)


async def _give(
    channel: Channel,
    sender: Caller,
    recipient: Caller,
    text: str,
    event: Event,
    why: str = "",
    *,
    policy: Policy = Policy.QUEUE,
    place: str = "",
) -> int:
    """Send, hand over as the recipient's waiter does, and record what became of it; the delivery's id."""
    names = {role.name for role in await channel.membership.roles_of(recipient.address)}
    await channel.sending.send(sender.address, text, sorted(names), None)
    [pending] = await channel.deliveries.next_pending(recipient.address)
    lease = await channel.leases.take(recipient.address, channel.process.to_text(), "")
    message = pending.message
    written = (
        envelope(message, channel.clock.now_ms())
        if policy is Policy.QUEUE
        else encode(Header(message.message_id, message.room, message.sender), message.text, "").text
    )
    hand_over = HandOver(pending.delivery_id, sha256(written.encode()).hexdigest(), place)
    await channel.deliveries.record_hand_over(lease, policy, [hand_over])
    await channel.deliveries.record([Outcome(pending.delivery_id, event, why)])
    await channel.leases.release(lease)
    return pending.delivery_id
