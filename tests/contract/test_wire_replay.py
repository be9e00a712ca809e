"""The captures of real sessions, replayed to the fake: the same requests get answers of the same shape.

A shape is the names and types at every level, lists element by element; errors are compared word for word.
Ids, times and texts of a model differ. What the fake may leave out is in `fakes/divergences.py`.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from fakes.codex_store import CodexHome, text_input
from fakes.codex_thread import ThreadOwner
from fakes.divergences import NEVER_TOLD
from tests.contract.app_server_client import Json, RawClient
from tests.contract.app_servers import FakeServers

CAPTURES = Path(__file__).parents[1] / "data" / "wire" / "codex"
WAIT_S = 20
LEFT_OUT = "(long line left out"


@dataclass(frozen=True)
class Before:
    """What there was before the capture began, and what others did meanwhile.

    `turns`: completed ones of the thread that the requests name (none: the capture starts its own).
    `rows`: keys queued before. `owner_elsewhere`: another process runs what is added.
    `added_meanwhile`: keys that another process adds after the last request.
    """

    turns: int = 0
    rows: tuple[str, ...] = ()
    owner_elsewhere: bool = False
    added_meanwhile: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    config: str = ""
    home_exists: bool = True


BEFORE = {
    "basic": Before(),
    "broken-config": Before(turns=1, rows=("cli",), config="\n" * 19 + "[broken"),
    "cross-process-bridge": Before(turns=5, owner_elsewhere=True),
    "edge-cases": Before(),
    "idempotency": Before(),
    "legacy-history": Before(added_meanwhile=("leg1",)),
    "missing-codex-home": Before(home_exists=False),
    "no-capabilities": Before(turns=1),
    "no-experimental-api": Before(turns=1),
    "old-server-0.120": Before(arguments=("--codex-version", "0.120.0")),
    "resume": Before(turns=12, rows=("k-iii",)),
    "unknown-thread": Before(turns=1, rows=("cli",)),
}


def recorded(name: str) -> list[Json]:
    return [json.loads(line) for line in (CAPTURES / f"{name}.jsonl").read_text().splitlines()]


def shape(value: Any) -> Any:
    """Names and types of `value`, without what differs from run to run."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


class Replay:
    """One capture against one fake server. `threads` maps recorded thread ids to the fake's."""

    def __init__(self, lines: list[Json], client: RawClient, home: CodexHome, threads: dict[str, str]) -> None:
        self.lines = lines
        self.client = client
        self.home = home
        self.threads = threads
        self.owner: ThreadOwner | None = None
        self.answers = {
            line["msg"]["id"]: line["msg"]
            for line in lines
            if line["dir"] == "<" and isinstance(line["msg"], dict) and "method" not in line["msg"]
        }
        self._cursor: str | None = None

    async def run(self) -> None:
        turns = 0
        for line in self.lines:
            message = line["msg"]
            if line["dir"] == ">":
                await self._turns_completed(turns)
                await self._send(message)
            elif isinstance(message, dict) and message.get("method") == "turn/completed":
                turns += 1

    async def finish(self, keys: tuple[str, ...]) -> None:
        """Let another process add these, and wait for as many turns as the capture has."""
        for key in keys:
            (thread,) = self.threads.values()
            self.home.add_row(thread, text_input("x"), key)
        await self._turns_completed(len(told(self.lines).get("turn/completed", [])))

    async def _turns_completed(self, count: int) -> None:
        while self.client.notified().count("turn/completed") < count:
            await self.client.messages.next()

    async def _send(self, message: Json) -> None:
        if "id" not in message:
            await self.client.send_line(json.dumps(message))
            return
        answer = await self._ask(message)
        expected = self.answers.get(message["id"])
        if message["method"] == "thread/start" and expected is not None:
            self.threads[expected["result"]["thread"]["id"]] = answer["result"]["thread"]["id"]
        if expected is not None:
            assert shape(answer) == shape(expected), message
            assert answer.get("error") == self._translated(expected.get("error")), message

    async def _ask(self, message: Json) -> Json:
        given = self._translated(message)
        if "cursor" in given.get("params", {}):
            given["params"]["cursor"] = self._cursor
        await self.client.send_line(json.dumps(given))
        answer = await self.client.answer(message["id"])
        if message["method"] == "thread/items/list" and "result" in answer:
            self._cursor = answer["result"]["nextCursor"]
        if message["method"] == "thread/queue/add" and self.owner is not None:
            self.owner.run_row()
        return answer

    def _translated(self, value: Any) -> Any:
        text = json.dumps(value)
        for theirs, ours in self.threads.items():
            text = text.replace(theirs, ours)
        return json.loads(text)


def told(lines: list[Json]) -> dict[str, list[Json]]:
    """The recorded notifications by name."""
    found: dict[str, list[Json]] = defaultdict(list)
    for line in lines:
        if line["dir"] == "<" and isinstance(line["msg"], dict) and "method" in line["msg"]:
            found[line["msg"]["method"]].append(line["msg"])
    return found


def distinct_shapes(messages: list[Json]) -> list[str]:
    return sorted({json.dumps(shape(message)) for message in messages})


@asynccontextmanager
async def replay(name: str, root: Path) -> AsyncIterator[Replay]:
    """The capture's fake server, started, with everything as it was before the capture."""
    before, lines = BEFORE[name], recorded(name)
    servers = FakeServers(root)
    if not before.home_exists:
        servers.environment["CODEX_HOME"] = str(root / "nowhere")
    if before.config:
        (servers.codex_home / "config.toml").write_text(before.config)
    threads = {}
    with ExitStack() as owned:
        owner = None
        if before.turns:
            thread = servers.home.create_thread().id
            owner = owned.enter_context(ThreadOwner(servers.home, thread))
            for number in range(before.turns):
                owner.start_turn(text_input(f"turn {number}"))
                owner.record_item()
                owner.complete()
            for key in before.rows:
                servers.home.add_row(thread, text_input("waiting"), key)
            named = (line["msg"]["params"].get("threadId") for line in lines if "params" in (line["msg"] or {}))
            threads = {next(each for each in named if each is not None): thread}
            if not before.owner_elsewhere:
                owned.close()
        async with servers.process(*before.arguments) as client:
            each = Replay(lines, client, servers.home, threads)
            each.owner = owner if before.owner_elsewhere else None
            yield each
    servers.home.close()


def test_every_capture_is_replayed():
    assert sorted(BEFORE) == sorted(path.stem for path in CAPTURES.glob("*.jsonl"))


@pytest.mark.parametrize("name", sorted(set(BEFORE) - {"missing-codex-home"}))
async def test_the_fake_answers_a_recorded_session_as_the_real_server_did(name: str, tmp_path: Path):
    with anyio.fail_after(WAIT_S):
        async with replay(name, tmp_path) as session:
            await session.run()
            await session.finish(BEFORE[name].added_meanwhile)
            notified = [message for message in session.client.messages.items if "method" in message]
    expected = told(session.lines)
    for method, messages in expected.items():
        if method not in NEVER_TOLD:
            ours = [message for message in notified if message["method"] == method]
            assert distinct_shapes(ours) == distinct_shapes(messages), method
    assert {message["method"] for message in notified} <= set(expected)


async def test_a_session_without_a_codex_home_ends_before_any_answer(tmp_path: Path):
    with anyio.fail_after(WAIT_S):
        async with replay("missing-codex-home", tmp_path) as session:
            await session.client.ended.wait()
            assert (session.answers, session.client.messages.items) == ({}, [])
