"""What really happened at the receivers: the invariants are judged by it, never by what the product says of itself."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field


class Violation(Exception):
    """A promise of the product was broken."""


@dataclass
class ThreadTruth:
    """One Codex thread. Keys are those of the product."""

    added: Counter[str] = field(default_factory=Counter)
    queued: set[str] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)
    """The keys among its items, in order: its model was given their texts."""
    tampered: set[str] = field(default_factory=set)
    """A person changed or deleted the row, a hook refused it, or its owner died with it."""

    def holds(self, key: str) -> bool:
        return key in self.queued or key in self.shown


@dataclass(frozen=True)
class Showing:
    """A delivery put before a Claude session's model, whole."""

    message_id: int
    repeat: bool


@dataclass
class Truth:
    """All receivers. `absent_when_read`: of a process and a thread, the keys in neither place at the moment when
    that process last read the thread's items."""

    threads: dict[str, ThreadTruth] = field(default_factory=lambda: defaultdict(ThreadTruth))
    absent_when_read: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    shown: dict[str, list[Showing]] = field(default_factory=lambda: defaultdict(list))
    """By the name of a Claude session."""
    texts: dict[int, str] = field(default_factory=dict)
    """Of each message, as it was stored."""
    broken: list[str] = field(default_factory=list)
    """Promises that were broken; an exception could be caught by the very code that broke one."""
    times_added: int = 0
    times_shown: int = 0
    suppressed: int = 0
    """Events that a Monitor dropped because they came too fast."""

    def require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.broken.append(otherwise)

    def note_added(self, thread_id: str, key: str, text: str) -> None:
        thread = self.threads[thread_id]
        thread.added[key] += 1
        thread.queued.add(key)
        self.times_added += 1
        message = self.texts.get(int(key.rpartition(":")[2]))
        is_whole = message is not None and text.endswith(f"\n{message}")
        self.require(thread.added[key] == 1, f"{key} was added twice to its thread")
        self.require(is_whole, f"{key} was added with another text than was sent")

    def note_items_read(self, process: str, thread_id: str) -> None:
        thread = self.threads[thread_id]
        self.absent_when_read[process, thread_id] = {key for key in thread.added if not thread.holds(key)}

    def note_shown(self, session: str, showing: Showing, text: str | None) -> None:
        """`text`: what the model can read off it; None where it was shortened."""
        before = any(each.message_id == showing.message_id for each in self.shown[session])
        self.shown[session].append(showing)
        self.times_shown += 1
        what = f"message {showing.message_id} was shown to {session}"
        is_exact = text is None or text == self.texts.get(showing.message_id)
        self.require(not before or showing.repeat, f"{what} again, and not as a repeat")
        self.require(is_exact, f"{what} with another text than was sent")

    def was_shown(self, session: str, message_id: int) -> bool:
        return any(each.message_id == message_id for each in self.shown[session])
