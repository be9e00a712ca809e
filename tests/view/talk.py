"""A channel as it looks in use: three rooms, an hour of messages, one delivery that a person has to decide about.

Beside what `stuck_deliveries` makes (the room hall) there is a room `parser`, where a Claude Code session and a Codex
thread talk, and a room with a long name that is quiet.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from channel.clock import SystemClock
from channel.delivery_states import Event, Policy
from channel.leases import Lease
from channel.membership import Caller
from channel.messages import HandOver, Outcome
from fakes.clock import FakeClock
from harness_adapters.composition import Channel, open_channel
from tests.integration.stuck_deliveries import Stuck, stuck_deliveries
from waiters.processes import own_identity

ROOM = "parser"
QUIET_ROOM = "release-of-the-parser-and-of-all-that-depends-on-it-" + "x" * 120
POLICY = "planner directs the work; builder asks before it changes a public name."
LONG = "\n".join(f"{line:3}  test_{line}_keeps_the_order_of_what_was_sent PASSED" for line in range(1, 121))

TEXTS = (
    ("planner", "Split parse() in two: one reads, one checks. Keep the signature of load() as it is."),
    (
        "builder",
        "Done in 3 commits:\n\n    def read(path):\n        return path.read_text()\n\n    def check(text): ...",
    ),
    ("planner", "Why is check() called twice in cli.py? I see it in line 40 and again in line 62."),
    (
        "builder",
        "The second one is for --stdin. I can fold both into load(), but then --stdin has to make a Path. Shall I?",
    ),
    ("planner", "No, leave it. Run the whole suite with warnings as errors, and tell me the slowest five tests."),
    ("builder", LONG),
    (
        "planner",
        "Fine. <b>Nothing</b> in the output may be taken for markup: `<script>alert(1)</script>` & friends stay text.",
    ),
    (
        "builder",
        "Understood: it is text, and https://example.org/a/long/path/without/a/place/to/break/0123456789abcdef too.",
    ),
)


class Talk:
    """The open channel, and who speaks in ROOM: `lease` of each."""

    def __init__(self, stuck: Stuck, channel: Channel, callers: dict[str, Caller], leases: dict[str, Lease]) -> None:
        self.stuck = stuck
        self.channel = channel
        self.callers = callers
        self.leases = leases

    async def send(self, sender: str, text: str, channel: Channel | None = None) -> int:
        """To the other one; the delivery's id."""
        channel = channel or self.channel
        to = next(name for name in self.leases if name != sender)
        await channel.sending.send(self.callers[sender].address, text, [to], ROOM)
        return (await channel.deliveries.next_pending(self.callers[to].address))[-1].delivery_id

    async def hand_over(self, recipient: str, channel: Channel | None = None) -> None:
        channel = channel or self.channel
        lease, policy = self.leases[recipient], self.policy(recipient)
        for pending in await channel.deliveries.next_pending(lease.address):
            await channel.deliveries.record_hand_over(lease, policy, [HandOver(pending.delivery_id, "0" * 64)])

    async def record(self, delivery_id: int, event: Event, channel: Channel | None = None) -> None:
        await (channel or self.channel).deliveries.record([Outcome(delivery_id, event)])

    @staticmethod
    def policy(recipient: str) -> Policy:
        return Policy.QUEUE if recipient == "builder" else Policy.MONITOR


@asynccontextmanager
async def talk(root: Path) -> AsyncIterator[Talk]:
    """Made under `root`; both speakers of ROOM are there as long as this process lives."""
    stuck = await stuck_deliveries(root)
    process = own_identity().to_text()
    callers = {
        "planner": Caller("claude:planner", "claude", process, process),
        "builder": Caller("codex:builder", "codex", process, process, thread_id="t", codex_home="/h", codex_path="/c"),
    }
    async with open_channel(stuck.database, durable=False) as channel:
        for name, caller in callers.items():
            await channel.membership.join(caller, ROOM, name, POLICY)
        gone = Caller("claude:gone", "claude", process, process)
        await channel.membership.join(gone, QUIET_ROOM, "releaser", None)
        await channel.membership.join(Caller("claude:deaf", "claude", process, process), ROOM, "reviewer", None)
        leases = {name: await channel.leases.take(caller.address, process, "") for name, caller in callers.items()}
        made = Talk(stuck, channel, callers, leases)
        await _fill(made)
        yield made


async def _fill(made: Talk) -> None:
    """The last hour, some minutes apart, with deliveries that took from a moment to minutes."""
    clock = FakeClock()
    now_ms = SystemClock().now_ms()
    async with open_channel(made.stuck.database, durable=False, clock=clock) as past:
        for number, (sender, text) in enumerate(TEXTS * 3):
            clock.set_wall_ms(now_ms - (59 - number * 2) * 60_000 - number * 700)
            delivery = await made.send(sender, text, past)
            recipient = "builder" if sender == "planner" else "planner"
            clock.advance(0.04 + (number % 5) * 0.3 + (90 if number == 9 else 0))
            await made.hand_over(recipient, past)
            clock.advance(0.2 + (number % 3) * 0.5)
            await made.record(delivery, Event.ANSWERED if recipient == "builder" else Event.TAKEN, past)
            clock.advance(0.6 + (number % 7) * 2)
            if number < 23:
                await made.record(delivery, Event.KEY_IN_ITEMS if recipient == "builder" else Event.IN_TRANSCRIPT, past)
