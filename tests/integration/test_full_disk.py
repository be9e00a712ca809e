"""A disk that is full under a running server and a running streamer: said, survived, nothing twice."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from channel.wakeups import ring
from tests.another_session import ROOM
from tests.integration.claude_stand_in import claude_stand_in
from tests.integration.server import Refused, running_server
from tests.small_disk import needs_root, small_disk

LIMIT_S = 50
FULL = "is full. Nothing was stored; free some space and try again."

pytestmark = [needs_root, pytest.mark.fault("F43")]


async def test_tools_say_that_the_disk_is_full_and_work_again_after_it(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S), small_disk(tmp_path / "disk") as disk:
        async with running_server(disk.folder / "channel" / "channel.db") as server:
            await server.call("join", room=ROOM, name="alice")
            disk.fill()
            with pytest.raises(Refused) as refused:
                await server.call("join", room=ROOM, name="alice")
            disk.free()
            joined = await server.call("join", room=ROOM, name="alice")
    assert refused.value.text.endswith(FULL)
    assert joined["registered_roles"] == ["alice"]


async def test_a_streamer_says_once_that_the_disk_is_full_and_delivers_after_it(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT_S), small_disk(tmp_path / "channel") as disk:
        async with claude_stand_in(tmp_path) as claude:
            await claude.join("bob")
            async with claude.monitor():
                streamer = await claude.until_active()
                waiter = await claude.channel.waiter(claude.address)
                assert waiter is not None
                os.kill(streamer, signal.SIGSTOP)
                await claude.peer.send("hello", "bob")
                disk.fill()
                os.kill(streamer, signal.SIGCONT)
                ring([waiter["bell"]])
                await claude.notifications.wait_for(lambda _: len(claude.said) == 1)
                assert await claude.channel.states(to="bob") == ["pending"]
                disk.free()
                await claude.channel.until_states(["seen"], to="bob")
    assert FULL in claude.said[0]
    assert len(claude.said) == 1
    assert [(text, header.repeat) for header, text in claude.shown] == [("hello", False)]
