"""A user removes the channel's folder under running servers: they go over to the one that comes after it."""

import shutil
from pathlib import Path

import anyio
import pytest

from tests.another_session import ROOM
from tests.integration.server import Refused, running_server

LIMIT_S = 40


@pytest.mark.fault("F43")
async def test_servers_whose_folder_was_removed_store_nothing_in_what_is_gone_and_meet_again_in_a_new_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "channel" / "channel.db"
    with anyio.fail_after(LIMIT_S):
        async with running_server(path) as ann, running_server(path) as bob:
            await ann.call("join", room=ROOM, name="ann")
            await bob.call("join", room=ROOM, name="bob")
            shutil.rmtree(path.parent)
            for server in (ann, bob):
                with pytest.raises(Refused) as refused:
                    await server.call("send", text="into nowhere")
                assert refused.value.text == "This session has joined no room. Call join(room, name) first."
            await bob.call("join", room=ROOM, name="bob")
            joined = await ann.call("join", room=ROOM, name="ann")
            sent = await ann.call("send", text="hello", to="bob")
    assert joined["registered_roles"] == ["bob", "ann"]
    assert sent["id"] == 1
