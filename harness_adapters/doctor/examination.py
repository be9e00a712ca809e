"""All checks in turn: what one finds out, later ones use."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from channel.errors import ChannelError, NoStore
from channel.inspection import Inspection
from harness_adapters.composition import Channel, open_channel
from harness_adapters.doctor.codex import codex_itself
from harness_adapters.doctor.databases import same_channel
from harness_adapters.doctor.deliveries import deliveries
from harness_adapters.doctor.files import file_and_folder, sqlite
from harness_adapters.doctor.finding import Examined, failed, passed
from harness_adapters.doctor.harnesses import found_programs
from harness_adapters.doctor.leftovers import leftover_processes
from harness_adapters.doctor.permission import streamer_rule
from harness_adapters.doctor.servers import Started, registered_servers
from harness_adapters.doctor.sessions import sessions
from harness_adapters.doctor.surroundings import Surroundings


async def examine(around: Surroundings) -> AsyncIterator[Examined]:
    """Everything, each finding as soon as it is there."""
    for finding in found_programs(around):
        yield Examined("harness", finding)
    # Before anything of ours opens the file, which mends its mode.
    for finding in file_and_folder(around):
        yield Examined("file", finding)
    yield Examined("sqlite", sqlite())
    async for finding in codex_itself(around):
        yield Examined("codex", finding)
    started: list[Started] = []
    async for finding in registered_servers(around, started):
        yield Examined("server", finding)
    for finding in same_channel(around, started):
        yield Examined("channel", finding)
    for server in started:
        if server.client.name == "claude-code":
            for finding in streamer_rule(around, server):
                yield Examined("permission", finding)
    async for finding in leftover_processes(around.clock):
        yield Examined("process", finding)
    async for examined in _stored(around):
        yield examined


async def _stored(around: Surroundings) -> AsyncIterator[Examined]:
    """What the channel's file tells."""
    async with AsyncExitStack() as stack:
        try:
            channel = await stack.enter_async_context(open_channel(around.database, durable=False, create=False))
        except NoStore:
            yield Examined("session", passed(f"nobody has joined yet: there is no {around.database}"))
            return
        except ChannelError as error:
            yield Examined("session", failed(f"the channel can't be opened: {error}", "See the lines about the file."))
            return
        async for examined in _of_channel(around, channel):
            yield examined


async def _of_channel(around: Surroundings, channel: Channel) -> AsyncIterator[Examined]:
    async for finding in sessions(channel.membership, channel.leases, around.codex_home):
        yield Examined("session", finding)
    async for finding in deliveries(Inspection(channel.database, channel.clock), channel.clock.now_ms()):
        yield Examined("delivery", finding)
