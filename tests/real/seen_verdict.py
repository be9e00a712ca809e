"""What the channel says was seen, held against what a model was really shown."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Showing(NamedTuple):
    """One message as it stood before the model, taken out of what was put around it."""

    message_id: int
    text: str
    is_repeat: bool = False


@dataclass
class Verdict:
    """How the deliveries to one role stand in the end. Each list names what should not be; all must be empty."""

    messages: int = 0
    states: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    repeated: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seen_not_shown: list[str] = field(default_factory=list)
    shown_not_seen: list[str] = field(default_factory=list)

    @property
    def troubles(self) -> dict[str, list[str]]:
        return {
            "lost": self.lost,
            "twice": self.twice,
            "with another text": self.wrong,
            "seen, but not shown": self.seen_not_shown,
            "shown, but not seen": self.shown_not_seen,
        }

    @property
    def holds(self) -> bool:
        return not any(self.troubles.values())


def judge(rows: Sequence[Mapping[str, Any]], showings: Iterable[Showing], answered: Collection[int]) -> Verdict:
    """`rows`: the role's deliveries (message_id, state, text); `answered`: the ids that a sender was told.

    A message that is in neither place may be uncertain; in any other state it is lost.
    """
    texts = {row["message_id"]: row["text"] for row in rows}
    verdict = Verdict(len(rows), Counter(row["state"] for row in rows))
    verdict.lost += [f"{each} was answered, and is not stored" for each in sorted(set(answered) - texts.keys())]
    new: Counter[int] = Counter()
    exact = set()
    for showing in showings:
        verdict.repeated += showing.is_repeat
        new[showing.message_id] += not showing.is_repeat
        if texts.get(showing.message_id) == showing.text:
            exact.add(showing.message_id)
        else:
            verdict.wrong.append(f"{showing.message_id} was shown as {showing.text!r}")
    verdict.shown = len(exact)
    verdict.twice += [f"{each} was shown as new {times} times" for each, times in new.items() if times > 1]
    for row in rows:
        message_id, state = row["message_id"], row["state"]
        if message_id in exact and state != "seen":
            verdict.shown_not_seen.append(f"{message_id} is {state}")
        elif message_id not in exact and state == "seen":
            verdict.seen_not_shown.append(f"{message_id}")
        elif message_id not in exact and state != "uncertain":
            verdict.lost.append(f"{message_id} is {state}")
    return verdict
