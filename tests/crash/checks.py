"""The promises, checked from the outside: the fakes' own records, what the session was shown, and the file."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from channel.delivery_states import MONITOR_TABLE, QUEUE_TABLE, State
from channel.messages import key_of
from tests.crash.world import World

_EVENTS = "SELECT delivery_id, event, from_state, to_state FROM delivery_events WHERE from_state IS NOT NULL"
_DELIVERIES = """
SELECT d.delivery_id, d.message_id, d.state, d.detail, d.policy, m.text, r.name AS recipient,
  EXISTS (SELECT 1 FROM delivery_events e WHERE e.delivery_id = d.delivery_id AND e.to_state = 'uncertain')
    AS was_uncertain
FROM deliveries d JOIN messages m ON m.message_id = d.message_id JOIN roles r ON r.role_id = d.role_id
WHERE m.sender_role_id IS NOT NULL ORDER BY d.message_id
"""

_STEPS = {(a.value, event.value, b.value) for table in (QUEUE_TABLE, MONITOR_TABLE) for (a, event), b in table.items()}
_ENDS = {State.SEEN.value, State.ACCEPTED.value, State.UNCERTAIN.value, State.WITHDRAWN.value}


@dataclass
class Verdict:
    """What became of a case's deliveries. `lost` and `twice` must be 0, `broken` empty."""

    delivered: int = 0
    repeated: int = 0
    """Shown again to Claude Code, marked."""
    uncertain: int = 0
    withdrawn: int = 0
    lost: int = 0
    twice: int = 0
    broken: list[str] = field(default_factory=list)
    """Any other promise that did not hold."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.twice or self.broken)


def judge(world: World) -> Verdict:
    """Look at everything, once all that still lives has come to rest."""
    verdict = Verdict()
    with closing(sqlite3.connect(world.database)) as file:
        file.row_factory = sqlite3.Row
        rows = file.execute(_DELIVERIES).fetchall()
        channel_id = file.execute("SELECT id FROM channel").fetchone()[0]
        verdict.broken += _of_the_file(file)
    keys = {row["message_id"]: key_of(channel_id, row["message_id"]) for row in rows}
    texts = {row["message_id"]: row["text"] for row in rows}
    verdict.broken += _unstored(world, rows)
    for row in rows:
        _judge_delivery(world, row, keys[row["message_id"]], verdict)
    verdict.twice += sum(times - 1 for times in _added(world).values() if times > 1)
    verdict.twice += sum(times - 1 for times in _held(world).values() if times > 1)
    not_claudes = {
        row["message_id"] for row in rows if row["state"] == State.WITHDRAWN.value or row["policy"] != "monitor"
    }
    verdict.broken += [*_showings(world, texts, not_claudes, verdict), *_order_of_adds(world, rows, keys)]
    verdict.broken += _changed_in_thread(world, texts)
    return verdict


def _of_the_file(file: sqlite3.Connection) -> Iterator[str]:
    [(integrity,)] = file.execute("PRAGMA integrity_check").fetchall()
    if integrity != "ok":
        yield f"integrity_check: {integrity}"
    for delivery_id, event, before, after in file.execute(_EVENTS):
        if (before, event, after) not in _STEPS:
            yield f"delivery {delivery_id} went from {before} to {after} by {event}, which no table holds"


def _unstored(world: World, rows: Sequence[sqlite3.Row]) -> Iterator[str]:
    """A message is stored with all its deliveries or not at all, and for sure if its sender was told so."""
    stored: dict[int, set[str]] = {}
    for row in rows:
        stored.setdefault(row["message_id"], set()).add(row["recipient"])
    for message_id, recipients in world.owed.items():
        if stored.get(message_id) != recipients:
            yield f"message {message_id} is owed to {recipients} and stored for {stored.get(message_id)}"
    for row in rows:
        if row["text"] != world.texts.get(row["message_id"], row["text"]):
            yield f"message {row['message_id']} is stored with another text"


def _judge_delivery(world: World, row: sqlite3.Row, key: str, verdict: Verdict) -> None:
    state, is_claudes = row["state"], row["policy"] == "monitor"
    what = f"message {row['message_id']} to {row['recipient']} is {state}"
    if is_claudes:
        is_there = any(header.message_id == row["message_id"] for header, _ in world.claude.shown)
    else:
        is_there = key in world.item_keys() if state == State.SEEN.value else key in _held(world)
    if state not in _ENDS:
        verdict.lost += 1
        verdict.broken.append(f"{what} in the end")
    elif state in (State.SEEN.value, State.ACCEPTED.value):
        verdict.delivered += is_there
        verdict.lost += not is_there
    elif state == State.UNCERTAIN.value:
        verdict.uncertain += 1
        if is_there:
            verdict.broken.append(f"{what}, and its key is in the thread")
    else:
        verdict.withdrawn += 1
        if not row["detail"]:
            verdict.broken.append(f"{what}, and does not say why")


def _added(world: World) -> Counter[str]:
    """How often an app-server was asked to add each key."""
    return Counter(each["key"] for each in world.home.received() if each["method"] == "thread/queue/add")


def _held(world: World) -> Counter[str]:
    """How often each key is in the thread's queue or among its items."""
    return Counter([*world.queued_keys(), *world.item_keys()])


def _showings(world: World, texts: Mapping[int, str], not_claudes: set[int], verdict: Verdict) -> Iterator[str]:
    """Each text exactly, as new at most once, and in the order of sending.

    One that a death cut off is followed by the whole of it, marked; or it is Claude's no more: withdrawn as "may have
    been shown", or given to the thread that took the role over.
    """
    new: Counter[int] = Counter()
    first: list[int] = []
    cut_off: set[int] = set()
    for header, text in world.claude.shown:
        message_id = header.message_id
        if message_id not in texts:
            continue  # a notice of the channel itself
        if text != texts[message_id]:
            cut_off.add(message_id)
            if not texts[message_id].startswith(text):
                yield f"message {message_id} was shown with another text"
        elif header.repeat:
            cut_off.discard(message_id)
        verdict.repeated += header.repeat
        new[message_id] += not header.repeat
        if message_id not in first:
            first.append(message_id)
    verdict.twice += sum(times - 1 for times in new.values() if times > 1)
    for message_id in cut_off - not_claudes:
        yield f"message {message_id} was cut off, and not repeated"
    if first != sorted(first):
        yield f"shown in the order {first}"


def _order_of_adds(world: World, rows: Sequence[sqlite3.Row], keys: dict[int, str]) -> Iterator[str]:
    """What was never uncertain is in the thread in the order of sending."""
    sure = {keys[row["message_id"]] for row in rows if row["policy"] == "queue" and not row["was_uncertain"]}
    in_order = [key for key in [*world.item_keys(), *world.queued_keys()] if key in sure]
    if in_order != sorted(in_order, key=_message_id):
        yield f"added in the order {[_message_id(key) for key in in_order]}"


def _changed_in_thread(world: World, texts: Mapping[int, str]) -> Iterator[str]:
    for key, text in world.texts_in_thread():
        message_id = _message_id(key)
        if message_id in texts and text.split("\n", 2)[2] != texts[message_id]:
            yield f"message {message_id} is in the thread with another text"


def _message_id(key: str) -> int:
    return int(key.rpartition(":")[2])
