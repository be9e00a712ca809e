"""The soak itself, short, and that its judge sees what should not be."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from channel.messages import key_of
from fakes.codex_store import CodexHome
from fakes.codex_thread import ThreadOwner, new_thread
from fakes.monitor_rules import Notification, task_notification
from harness_adapters.codex.envelope import envelope
from tests.another_session import ROOM, ChannelView, open_view
from tests.soak.campaign import soak_world
from tests.soak.judge import Verdict, judge

KILLS_S = 12.0
SENDER, CLAUDE, CODEX = "sender", "claude-1", "codex-1"


@pytest.mark.timeout(300)
@pytest.mark.fault("F24")
async def test_a_short_soak_loses_nothing_gives_nothing_twice_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with soak_world(tmp_path, seed=7, trouble="kill") as soak:
        await soak.run(KILLS_S, lambda _: None)
    assert soak.report.holds, soak.report
    assert soak.report.struck
    assert soak.report.verdict.shown


@dataclass
class Scene:
    """A channel with one role of each kind, and what their sessions were shown, both as a test has it."""

    view: ChannelView
    home: CodexHome
    thread: str
    transcript: Path
    owed: dict[int, set[str]] = field(default_factory=dict)

    async def send(self, text: str) -> int:
        sent = await self.view.session(SENDER).send(text, [CLAUDE, CODEX])
        await self.set_states("seen")
        self.owed[sent["id"]] = {CLAUDE, CODEX}
        return int(sent["id"])

    async def set_states(self, state: str) -> None:
        async with self.view.channel.database.transaction() as transaction:
            await transaction.run(
                "UPDATE deliveries SET state = ?, policy = 'queue', address = '', text_sha256 = '', term = 1", (state,)
            )

    def show(self, message_id: int, text: str, *, repeat: bool = False) -> None:
        """To the Claude Code session."""
        event = f"{message_id} {ROOM} {SENDER}{' repeat=1' * repeat}\n|{text}"
        element = task_notification("1-0", "messages", Notification("event", event))
        with self.transcript.open("a") as file:
            file.write(json.dumps({"message": {"content": element}}) + "\n")

    async def add(self, message_id: int, text: str | None = None) -> None:
        """To the thread, as an item."""
        message = await self.view.channel.deliveries.message(message_id)
        channel_id = await self.view.channel.membership.channel_id()
        assert channel_id is not None
        input_ = [{"type": "text", "text": envelope(message, message.created_at_ms) if text is None else text}]
        with ThreadOwner(self.home, self.thread) as owner:
            owner.start_turn(input_, key_of(channel_id, message_id))
            owner.record_item()
            owner.complete()

    def judge(self) -> Verdict:
        path = self.view.channel.database.path
        return judge(path, self.home, {CLAUDE: self.transcript}, {CODEX: self.thread}, self.owed)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    (tmp_path / ".codex").mkdir()
    home = CodexHome(tmp_path / ".codex")
    transcript = tmp_path / "transcript.jsonl"
    transcript.touch()
    async with open_view(tmp_path / "channel" / "channel.db") as view:
        for name in (SENDER, CLAUDE, CODEX):
            await view.session(name).join(name)
        yield Scene(view, home, new_thread(home), transcript)
    home.close()


async def test_the_judge_finds_nothing_where_all_arrived(scene: Scene) -> None:
    for text in ("one", "two"):
        message_id = await scene.send(text)
        scene.show(message_id, text)
        await scene.add(message_id)
    scene.show(message_id, "two", repeat=True)
    verdict = scene.judge()
    assert (verdict.lost, verdict.twice, verdict.wrong, verdict.open) == ([], [], [], [])
    assert (verdict.shown, verdict.repeated) == (4, 1)


async def test_the_judge_finds_what_is_called_seen_and_is_not_there(scene: Scene) -> None:
    await scene.send("one")
    assert len(scene.judge().lost) == 2


async def test_the_judge_finds_what_is_not_at_rest(scene: Scene) -> None:
    message_id = await scene.send("one")
    for state in ("handed_over", "accepted"):
        await scene.set_states(state)
        assert len(scene.judge().open) == 2
    scene.show(message_id, "one")
    assert len(scene.judge().open) == 1


async def test_the_judge_finds_what_came_twice(scene: Scene) -> None:
    message_id = await scene.send("one")
    for _ in range(2):
        scene.show(message_id, "one")
        await scene.add(message_id)
    assert len(scene.judge().twice) == 2


async def test_the_judge_finds_another_text_and_another_order(scene: Scene) -> None:
    ids = [await scene.send("one"), await scene.send("two")]
    for message_id in reversed(ids):
        scene.show(message_id, "another")
        await scene.add(message_id, "another")
    assert len(scene.judge().wrong) == 6


async def test_the_judge_finds_a_message_that_was_stored_in_part(scene: Scene) -> None:
    message_id = await scene.send("one")
    scene.show(message_id, "one")
    await scene.add(message_id)
    scene.owed[message_id] = {CLAUDE, CODEX, "a third"}
    scene.owed[99] = {CLAUDE}
    assert len(scene.judge().wrong) == 2
