"""All checks in turn: what one finds out, later ones use."""

from collections.abc import AsyncIterator

from channel.errors import ChannelError, NoStore
from channel.inspection import Inspection
from harness_adapters.composition import Channel, open_channel
from harness_adapters.doctor.codex import codex_itself
from harness_adapters.doctor.databases import same_channel
from harness_adapters.doctor.deliveries import deliveries
from harness_adapters.doctor.files import file_and_folder
from harness_adapters.doctor.finding import Examined, Finding, failed, passed
from harness_adapters.doctor.harnesses import found_programs
from harness_adapters.doctor.leftovers import leftover_processes
from harness_adapters.doctor.permission import streamer_permission
from harness_adapters.doctor.servers import Started, registered_servers
from harness_adapters.doctor.sessions import sessions
from harness_adapters.doctor.surroundings import Surroundings


async def examine(around: Surroundings) -> AsyncIterator[Examined]:
    """Everything, each finding as soon as it is there."""
    started: list[Started] = []
    checks = (
        ("harness", found_programs(around)),
        ("file", file_and_folder(around)),  # before anything of ours opens it, and mends its mode
        ("codex", codex_itself(around)),
        ("server", registered_servers(around, started)),
        ("channel", same_channel(around, started)),
        ("permission", streamer_permission(around, started)),
        ("process", leftover_processes(around.clock)),
    )
    for subject, findings in checks:
        async for examined in _named(subject, findings):
            yield examined
    try:
        async with open_channel(around.database, durable=False, create=False) as channel:
            async for examined in _stored(around, channel):
                yield examined
    except NoStore:
        yield Examined("session", passed(f"nobody has joined yet: there is no {around.database}"))
    except ChannelError as error:
        yield Examined("session", failed(f"the channel can't be read: {error}", "See the lines about the file."))


async def _stored(around: Surroundings, channel: Channel) -> AsyncIterator[Examined]:
    """What the channel's file tells."""
    inspection = Inspection(channel.database, channel.clock)
    checks = (
        ("session", sessions(channel.membership, channel.leases, around.codex_home)),
        ("delivery", deliveries(inspection, channel.clock.now_ms())),
    )
    for subject, findings in checks:
        async for examined in _named(subject, findings):
            yield examined


async def _named(subject: str, findings: AsyncIterator[Finding]) -> AsyncIterator[Examined]:
    """What the system does not let the doctor look at is a finding too."""
    try:
        async for finding in findings:
            yield Examined(subject, finding)
    except OSError as error:
        yield Examined(subject, failed(f"this can't be looked at: {error}", "Mend that, and run the doctor again."))
