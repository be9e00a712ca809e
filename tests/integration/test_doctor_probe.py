"""`doctor --probe`, the test in the place of Claude Code: what it proves, what it does not, what it leaves behind."""

import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from channel.names import utf16_units
from fakes.clock import FakeIds
from harness_adapters.doctor.finding import Finding, Level
from harness_adapters.doctor.probe import CantProbe, probe
from harness_adapters.doctor.probe_message import probe_message
from tests.another_session import ROOM
from tests.integration.claude_stand_in import PEER, ClaudeStandIn, claude_stand_in
from tests.integration.stuck_deliveries import COMMAND_LINE

LIMIT_S = 50
SOON_S = 2
"""For what does not come."""

LOOKED_S = 8
"""Enough for what does come: the first look for a message is 1 s after it was taken."""

BOB = "bob"

pytestmark = pytest.mark.timeout(LIMIT_S + 10)

Model = Callable[[ClaudeStandIn, str], Awaitable[None]]
"""What the session does with the text of a probe."""


async def answer(claude: ClaudeStandIn, text: str) -> None:
    [first], [last], name = re.findall(r"FIRST (\w+)", text), re.findall(r"LAST (\w+)", text), doctor_in(text)
    await claude.send(f"Here you are: {first} {last}.", name)


async def answer_half(claude: ClaudeStandIn, text: str) -> None:
    await claude.send(re.findall(r"FIRST (\w+)", text)[0], doctor_in(text))


async def say_nothing(claude: ClaudeStandIn, text: str) -> None:
    """Its model reads it, and does not answer."""


def doctor_in(text: str) -> str:
    return str(re.findall(r"`(doctor-\w+)`", text)[0])


async def probed(claude: ClaudeStandIn, model: Model, within_s: float) -> Finding:
    """A probe of BOB, whose session does what `model` does."""

    async def live() -> None:
        [(_, text)] = await claude.until_shown(1)
        await model(claude, text)

    async with claude.monitor(), anyio.create_task_group() as tasks:
        await claude.until_active()
        tasks.start_soon(live)
        [finding] = await probe(claude.database, [BOB], None, within_s, lambda _: None)
        tasks.cancel_scope.cancel()
    return finding


async def test_a_message_that_is_answered_proves_the_way_there_and_back(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join(BOB)
            finding = await probed(claude, answer, LIMIT_S)
            roles = await claude.channel.roles()
    assert (finding.level, finding.to_do) == (Level.PASS, "")
    assert {word for word, _ in finding.times_ms} == {"handed_over", "accepted", "seen", "answered", "heard"}
    assert list(finding.times_ms) == sorted(finding.times_ms, key=lambda each: each[1])
    assert set(roles) == {BOB, PEER}


@pytest.mark.parametrize(
    ("model", "shown", "level", "words"),
    [
        (say_nothing, True, Level.WARN, "appeared whole; no answer within 8 s, so the way back is not proved"),
        (answer_half, True, Level.WARN, "it answered, but not with both words"),
        (say_nothing, False, Level.FAIL, "nothing appeared within 8 s: the message is accepted"),
    ],
)
async def test_what_was_not_proved_is_said(tmp_path: Path, model: Model, shown: bool, level: Level, words: str) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            claude.records_what_is_shown = shown
            await claude.join(BOB)
            finding = await probed(claude, model, LOOKED_S)
    assert finding.level is level
    assert words in finding.proved
    assert finding.to_do


async def test_nothing_is_sent_to_a_role_that_would_not_be_woken(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join(BOB)
            [finding] = await probe(claude.database, [BOB], ROOM, LIMIT_S, lambda _: None)
            sent = await claude.channel.deliveries(to=BOB)
    assert finding.level is Level.FAIL
    assert "bob in hall: offline since " in finding.proved
    assert sent == []


async def test_what_is_still_waiting_at_the_end_is_dropped(tmp_path: Path) -> None:
    """Its streamer is stopped in the moment: it would come when nobody waits for the answer any more."""
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join(BOB)
            async with claude.monitor():
                streamer = await claude.until_active()
                os.kill(streamer, signal.SIGSTOP)
                try:
                    [finding] = await probe(claude.database, [BOB], None, SOON_S, lambda _: None)
                finally:
                    os.kill(streamer, signal.SIGCONT)
            states = await claude.channel.states(to=BOB)
    assert finding.level is Level.FAIL
    assert "nothing appeared within 2 s: the message is pending" in finding.proved
    assert states == ["withdrawn"]


@pytest.mark.parametrize(
    ("roles", "room", "reason"),
    [
        (["nobody"], None, "No room has 'nobody'. The roles that are held: bob in attic, bob in hall, peer in hall."),
        ([PEER], "attic", "The room 'attic' has not 'peer'."),
        ([BOB], None, r"Several rooms have 'bob' \(attic, hall\): name one with --room"),
    ],
)
async def test_roles_that_can_not_be_told_are_named(
    tmp_path: Path, roles: list[str], room: str | None, reason: str
) -> None:
    async with claude_stand_in(tmp_path) as claude:
        await claude.join(BOB)
        await claude.join(BOB, room="attic")
        with pytest.raises(CantProbe, match=reason):
            await probe(claude.database, roles, room, SOON_S, lambda _: None)


async def test_ctrl_c_ends_a_probe_with_130_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            claude.records_what_is_shown = False
            await claude.join(BOB)
            async with claude.monitor():
                await claude.until_active()
                command = [*COMMAND_LINE, "--db", str(claude.database), "doctor", "--probe", BOB]
                async with await anyio.open_process(command, stderr=subprocess.PIPE, env=claude.environment) as doctor:
                    await claude.until_shown(1)
                    doctor.send_signal(signal.SIGINT)
                    status = await doctor.wait()
                    assert doctor.stderr is not None
                    said = b"".join([chunk async for chunk in doctor.stderr])
            roles = await claude.channel.roles()
    assert (status, said) == (130, b"")
    assert set(roles) == {BOB, PEER}


async def test_what_a_killed_probe_left_behind_is_put_away_by_the_next(tmp_path: Path) -> None:
    """A session called nearly so stays: only a doctor's name, of a process that is gone, is a doctor's."""
    with anyio.fail_after(LIMIT_S):
        async with claude_stand_in(tmp_path) as claude:
            await claude.join(BOB)
            async with claude.monitor():
                await claude.until_active()
                command = [*COMMAND_LINE, "--db", str(claude.database), "doctor", "--probe", BOB]
                async with await anyio.open_process(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                ) as doctor:
                    [(_, text)] = await claude.until_shown(1)
                    doctor.kill()
                left = doctor_in(text)
                assert left in await claude.channel.roles()
                await probe(claude.database, [BOB], None, SOON_S, lambda _: None)
            roles = await claude.channel.roles()
    assert set(roles) == {BOB, PEER}


async def test_a_probe_says_what_it_is_and_holds_what_is_easily_harmed() -> None:
    message = probe_message("doctor-1", ROOM, FakeIds())
    assert utf16_units(message.text) > 3_000
    assert message.text.startswith(
        "This is a test of the way to you and back. Your user's `agent-channel doctor` sends it"
    )
    for part in ("\n\tif ", "blanks:  \n", "\n\t    return", "👩‍👩‍👧‍👦", "<b>&amp;</b>", "\n\n"):
        assert part in message.text
    assert message.is_answered_by(f"{message.last}, {message.first}")
    assert not message.is_answered_by(message.first)
