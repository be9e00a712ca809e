"""Whether all sides have the same channel: sessions of two files never hear of each other."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from harness_adapters.doctor.finding import Finding, failed, passed
from harness_adapters.doctor.servers import Started
from harness_adapters.doctor.surroundings import Surroundings


async def same_channel(around: Surroundings, started: Sequence[Started]) -> AsyncIterator[Finding]:
    """Compares the files that the started servers had open, and that of a person's commands."""
    for server in started:
        named = server.registration.database
        if named is not None and not named.expanduser().is_absolute():
            yield failed(
                f"{server.client.title}: --db {named} is another file in each folder that a session is started in",
                f"Register an absolute path: agent-channel install --client {server.client.name}",
            )
    if not started:
        return
    sides: dict[Path, list[str]] = {}
    for server in started:
        sides.setdefault(server.database, []).append(server.client.title)
    sides.setdefault(around.database.resolve(), []).append("your commands")
    if len(sides) == 1:
        [(database, names)] = sides.items()
        yield passed(f"{' and '.join(names)} use the same channel: {database}")
        return
    each = "; ".join(f"{' and '.join(names)}: {path}" for path, names in sides.items())
    yield failed(
        f"{len(sides)} databases, and what is said in one is not heard in another: {each}",
        "Name the same one everywhere: `agent-channel --db FILE install` for the clients, --db or AGENT_CHANNEL_DB "
        "for your commands.",
    )
