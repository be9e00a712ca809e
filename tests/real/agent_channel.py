"""The product in a real harness: how it is registered, what its model is made to do, what it was shown.

rules = [*JOINS_AND_LISTENS]
async with claude_with_agent_channel(*rules) as (api, world, channel), world.stream_session() as session:
    await session.say(JOIN)
    await channel.until_active(address_of(session))
    await channel.session("peer").send("hello", CLAUDE)
"""

import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from fakes.messages_api import MessagesApi
from fakes.messages_script import Predicate, Reply, Rule, call
from fakes.messages_shown import ModelRequest, Notification
from harness_adapters.claude.addresses import claude_address
from harness_adapters.claude.framing import Header, decode, whole_deliveries
from harness_adapters.claude.launch_command import launch_command
from tests.another_session import ROOM, ChannelView, open_view
from tests.real.claude_rig import ClaudeWorld, Session, joining, offline_claude
from waiters.processes import ProcessIdentity, identity_of

SERVER = "agent-channel"
CLAUDE, PEER = "claude", "peer"
JOIN = "join the room"

JOIN_TOOL, SEND_TOOL = f"mcp__{SERVER}__join", f"mcp__{SERVER}__send"

JOINS_AND_LISTENS = tuple(joining(JOIN, JOIN_TOOL, {"room": ROOM, "name": CLAUDE}))
"""The prompt JOIN makes the model call `join` and run the command of its answer in Monitor."""


def server_command(database: Path | None = None) -> list[str]:
    """How either harness is told to start the server."""
    command = [sys.executable, "-I", "-m", "harness_adapters.mcp_server"]
    return command if database is None else [*command, "--db", str(database)]


def default_database(home: Path) -> Path:
    """Where the channel of a world is without --db."""
    return home / ".agent-channel" / "channel.db"


def monitor_command(database: Path | None = None) -> str:
    """The command that `join` returns, for the permission rule that README gives."""
    default = default_database(Path.home())
    return launch_command(database or default, default, None)


@asynccontextmanager
async def claude_with_agent_channel(
    *rules: Rule, database: Path | None = None, allow: Sequence[str] = (), **options: Any
) -> AsyncIterator[tuple[MessagesApi, ClaudeWorld, ChannelView]]:
    """A world whose Claude Code has the server registered and its commands allowed, and PEER in ROOM.

    `options` are those of `offline_claude`.
    """
    command = server_command(database)
    servers = {SERVER: {"command": command[0], "args": command[1:]}}
    allowed = [f"mcp__{SERVER}", f"Bash({monitor_command(database)})", *allow]
    async with offline_claude(*rules, allow=allowed, mcp_servers=servers, **options) as (api, world):
        async with open_view(database or default_database(world.home)) as channel:
            await channel.session(PEER).join(PEER)
            yield api, world, channel


def sending(text: str, to: str) -> Reply:
    """The model of Claude Code calls `send`."""
    return call(SEND_TOOL, {"text": text, "to": to})


def address_of(session: Session) -> str:
    """The address that messages to a Claude Code process are given to."""
    identity = identity_of(session.pid)
    assert identity is not None
    return claude_address(identity)


async def streamer_of(channel: ChannelView, address: str) -> psutil.Process:
    """The process that serves an address."""
    waiter = await channel.until_waiter(address, lambda row: row["released_at_ms"] is None)
    return process_of(waiter)


def process_of(waiter: Mapping[str, Any]) -> psutil.Process:
    """The process that a row of `waiters` names."""
    return psutil.Process(ProcessIdentity.from_text(waiter["process"]).pid)


def shown_messages(notifications: Iterable[Notification]) -> list[tuple[Header, str]]:
    """Each message that Monitors showed, with its exact text, in order.

    Every line of every event belongs to a whole message: else an AssertionError names what was left over.
    `notices` are what Monitor itself says.
    """
    lines_of_task: dict[str, list[str]] = {}
    for each in notifications:
        if each.event and not is_notice(each):
            lines_of_task.setdefault(each.task_id, []).extend(each.event.split("\n"))
    shown = []
    for lines in lines_of_task.values():
        wholes = list(whole_deliveries(lines))
        assert [line for whole in wholes for line in whole.lines] == lines
        shown += [decode(whole.lines) for whole in wholes]
    return shown


def shown_texts(notifications: Iterable[Notification]) -> list[str]:
    return [text for _, text in shown_messages(notifications)]


def is_expiry(notification: Notification) -> bool:
    return (notification.event or "").startswith("[Monitor expired")


def is_notice(notification: Notification) -> bool:
    """Monitor's own words, or the streamer's: neither is a message."""
    return is_expiry(notification) or (notification.event or "").startswith("agent-channel: ")


def monitor_has_ended(request: ModelRequest) -> bool:
    """Holds where the model learns that a Monitor expired or that its command ended."""
    return any(is_expiry(each) or each.status for each in request.newest_notifications)


def has_shown(text: str) -> Predicate:
    """Holds where a new event holds a line of `text`."""
    return lambda request: any(text in (each.event or "") for each in request.newest_notifications)
