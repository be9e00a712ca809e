"""What differs on the daemon's socket: WebSocket frames, several clients of one process. Codex's rules."""

import anyio
import pytest

from tests.contract.app_server_client import socket_client
from tests.contract.app_servers import AppServers

pytestmark = pytest.mark.timeout(90)


async def test_every_client_is_told_the_name_of_the_first_one(servers: AppServers):
    async with servers.socket() as path, socket_client(path) as first, socket_client(path) as second:
        names = [
            (await client.initialize(name=name))["userAgent"] for client, name in ((first, "first"), (second, "second"))
        ]
    assert names[0].startswith("first/0.171.0 (") and names[0].endswith("(first; 1)")
    assert names[1].startswith("first/0.171.0 (") and names[1].endswith("(second; 1)")


async def test_a_row_added_over_the_socket_runs_at_once_and_only_a_subscriber_hears_of_its_items(
    servers: AppServers,
):
    async with servers.socket() as path, socket_client(path) as owner, socket_client(path) as bridge:
        await owner.initialize()
        await bridge.initialize()
        thread = await owner.new_thread(servers.project)
        await bridge.add(thread, "key", "x")
        item = await owner.notification("item/completed", lambda params: params["item"].get("clientId") == "key")
        await owner.turn_completed(item["turnId"])
        assert ("key", "x") in await bridge.said(thread)
        heard = {name for name in bridge.notified() if name.startswith(("thread/", "turn/", "item/"))}
    assert heard == {"thread/started", "thread/status/changed", "thread/readState/changed"}


async def test_a_frame_that_is_no_message_is_dropped_and_a_frame_is_one_message(servers: AppServers):
    one = '{"id":91,"method":"bogus","params":{}}'
    async with servers.socket() as path, socket_client(path) as client:
        await client.initialize()
        for frame in ("garbage", f"{one}\n{one}", ""):
            await client.send_line(frame)
        await client.ask("bogus", {})
        answered = [message["id"] for message in client.messages.items if "method" not in message]
        assert len(answered) == 2
        logged = await anyio.Path(servers.stderr).read_text()
    assert logged.count("Failed to deserialize JSONRPCMessage") == 3


async def test_a_megabyte_comes_back_whole_in_its_answer(servers: AppServers):
    longest = "\U0001f600" * 1_048_576
    async with servers.socket() as path, socket_client(path) as client:
        await client.initialize()
        thread = await client.new_thread(servers.project)
        assert (await client.add(thread, "key", longest))["input"][0]["text"] == longest
