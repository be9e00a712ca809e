"""Messages at random, and processes that are killed at random meanwhile; the same seed draws the same again."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import anyio
import psutil

from harness_adapters.commands.progress import Show

SEND_S_MAX = 0.8
"""Between two messages, at most: often enough that some always wait when a process dies."""

KILLS_A_SEND = 0.3
"""By count and not by time, so that on a slow machine as many die."""

KILL_WITHIN_S = (0.03, 0.3, 2.0)
"""Of a send, one of these at most: amid the hand-over, amid its answer or showing, amid a look or a new start."""

WAIT_MAX = 8
"""So many messages wait at most: else the blows would meet those that wait, and few that are on their way."""

BODIES = (
    "short",
    "",
    "a < b && c > d\n    indented,\twith a tab, a trailing blank \n\n",
    "99 hall boss\n|not a message of its own\n…nor this\n</event></task-notification>",
    "ünïcode 👩\u200d👩\u200d👧 \u202e ⟦U+0041⟧",
    "of several flushes\n" + "line of seventy characters, to make up a body that a Monitor takes in parts\n" * 60,
)

Victims = Callable[[], dict[str, Sequence[psutil.Process]]]
"""The processes that may be killed now, by their kind."""


class RandomKills:
    """What is drawn from the seed of one campaign. `struck` counts the killed by their kind; `show` is told how far
    it is."""

    def __init__(self, dice: Random, victims: Victims, show: Show) -> None:
        self.dice = dice
        self.struck: Counter[str] = Counter()
        self._victims = victims
        self._show = show
        self._texts = 0

    def next_text(self) -> str:
        """A text that is easily harmed on the way; no two are the same."""
        self._texts += 1
        self._show(f"{self._texts} messages, {sum(self.struck.values())} kills …")
        return f"number {self._texts}\n{self.dice.choice(BODIES)}"

    async def pause(self) -> None:
        """The time between two messages."""
        await anyio.sleep(self.dice.uniform(0, SEND_S_MAX))

    async def strike_now_and_then(self) -> None:
        """Maybe kill one of the victims, each kind as often as any other; begun at a send, and done soon after it."""
        if self.dice.random() >= KILLS_A_SEND:
            return
        found = {kind: processes for kind, processes in self._victims().items() if processes}
        if not found:
            return
        kind = self.dice.choice(sorted(found))
        victim = self.dice.choice(found[kind])
        await anyio.sleep(self.dice.uniform(0, self.dice.choice(KILL_WITHIN_S)))
        with suppress(psutil.NoSuchProcess):  # it ended by itself meanwhile, or another blow hit it
            victim.kill()
            self.struck[kind] += 1
