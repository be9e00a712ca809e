"""What became of all that was sent: the channel's file against what the sessions' own files say they were shown."""

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from channel.messages import key_of
from fakes.codex_store import CodexHome
from harness_adapters.claude.framing import Header, decode, whole_deliveries
from harness_adapters.codex.envelope import ORIGIN

_EVENT = re.compile(r"<task-id>([^<]*)</task-id>.*?<event>([^<]*)</event>", re.DOTALL)

_DELIVERIES = """
SELECT d.message_id, d.state, d.detail, m.text, r.name AS recipient, rooms.name AS room, m.sender
FROM deliveries d JOIN messages m USING (message_id) JOIN roles r ON r.role_id = d.role_id
  JOIN rooms ON rooms.room_id = m.room_id
WHERE m.sender_role_id IS NOT NULL ORDER BY d.message_id
"""

Shown = tuple[Header, str]


@dataclass
class Verdict:
    """`open`: deliveries on their way still; `lost` and `twice` name what should not be."""

    messages: int = 0
    deliveries: int = 0
    states: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    repeated: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """A text that is not the one that was sent, an order that is not that of sending, a message stored in part."""
    open: list[str] = field(default_factory=list)


def judge(
    database: Path,
    home: CodexHome,
    transcripts: Mapping[str, Path],
    threads: Mapping[str, str],
    owed: Mapping[int, set[str]],
) -> Verdict:
    """`transcripts` and `threads`: of each role; `owed`: to whom a message was accepted for, as `send` answered."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        rows = file.execute(_DELIVERIES).fetchall()
        (channel_id,) = file.execute("SELECT id FROM channel").fetchone()
        [(integrity,)] = file.execute("PRAGMA integrity_check").fetchall()
    verdict = Verdict(messages=len({row["message_id"] for row in rows}), deliveries=len(rows))
    if integrity != "ok":
        verdict.wrong.append(f"integrity_check: {integrity}")
    verdict.wrong += _stored_in_part(rows, owed)
    for role, transcript in transcripts.items():
        _judge_claude([row for row in rows if row["recipient"] == role], list(_shown(transcript)), role, verdict)
    for role, thread in threads.items():
        _judge_codex([row for row in rows if row["recipient"] == role], home, thread, channel_id, role, verdict)
    return verdict


def _stored_in_part(rows: Sequence[sqlite3.Row], owed: Mapping[int, set[str]]) -> Iterator[str]:
    stored: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        stored[row["message_id"]].add(row["recipient"])
    for message_id, recipients in owed.items():
        if stored[message_id] != recipients:
            yield f"message {message_id} was accepted for {sorted(recipients)}, stored for {sorted(stored[message_id])}"


def _judge_claude(rows: Sequence[sqlite3.Row], shown: Sequence[Shown], role: str, verdict: Verdict) -> None:
    first: dict[int, str] = {}
    for header, text in shown:
        verdict.repeated += header.repeat
        if header.message_id not in first:
            first[header.message_id] = text
        elif not header.repeat:
            verdict.twice.append(f"message {header.message_id} was shown to {role} as new again")
    for row in rows:
        _count(row, row["message_id"] in first, role, verdict)
        if first.get(row["message_id"], row["text"]) != row["text"]:
            verdict.wrong.append(f"message {row['message_id']} reached {role} with another text")
    _check_order(list(first), role, verdict)


def _judge_codex(
    rows: Sequence[sqlite3.Row], home: CodexHome, thread: str, channel_id: str, role: str, verdict: Verdict
) -> None:
    bodies = [item.body for item in home.items(thread) if item.body.get("clientId")]
    texts = {body["clientId"]: body["content"][0]["text"] for body in bodies}
    added = Counter(
        each["key"] for each in home.received() if each["method"] == "thread/queue/add" and each["threadId"] == thread
    )
    times = Counter([*(row.client_id for row in home.rows(thread)), *(body["clientId"] for body in bodies)])
    ids = {key_of(channel_id, row["message_id"]): row["message_id"] for row in rows}
    for key, message_id in ids.items():
        if max(times[key], added[key]) > 1:
            verdict.twice.append(f"message {message_id} was added to {role} {max(times[key], added[key])} times")
    for row in rows:
        text = texts.get(key_of(channel_id, row["message_id"]))
        _count(row, text is not None, role, verdict)
        if text is not None and not text.endswith(f"\n{ORIGIN}\n{row['text']}"):
            verdict.wrong.append(f"message {row['message_id']} reached {role} with another text")
    _check_order([ids[body["clientId"]] for body in bodies if body["clientId"] in ids], role, verdict)


def _count(row: sqlite3.Row, is_there: bool, role: str, verdict: Verdict) -> None:
    what = f"message {row['message_id']} to {role} is {row['state']} ({row['detail']})"
    verdict.states[row["state"]] += 1
    verdict.shown += is_there
    if row["state"] in ("pending", "handed_over", "conflict"):
        verdict.open.append(what)
    elif row["state"] == "accepted" and not is_there:
        verdict.open.append(f"{what}, and is not there")
    elif row["state"] in ("seen", "withdrawn") and not is_there:
        verdict.lost.append(f"{what}, and is not there")


def _check_order(ids: Sequence[int], role: str, verdict: Verdict) -> None:
    for before, after in pairwise(ids):
        if before > after:
            verdict.wrong.append(f"message {after} reached {role} after message {before}")


def _shown(transcript: Path) -> Iterator[Shown]:
    """Each writing that a Monitor showed whole, in the order of their ends."""
    lines: dict[str, list[str]] = defaultdict(list)
    order: list[str] = []
    for record in transcript.read_text(encoding="utf-8").splitlines():
        found = _EVENT.search(json.loads(record)["message"]["content"])
        if found is not None:
            if found[1] not in lines:
                order.append(found[1])
            lines[found[1]] += _without_entities(found[2]).split("\n")
    for task_id in order:
        for whole in whole_deliveries(lines[task_id]):
            if not whole.shortened and whole.header.sender != "agent-channel":
                yield decode(whole.lines)


def _without_entities(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
