"""The doctor in a world of a test's own: what it finds there, by subject."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from channel.clock import SystemClock
from channel.mounts import MountTable, system_mounts
from harness_adapters.doctor.examination import examine
from harness_adapters.doctor.finding import Examined, Finding, Level
from harness_adapters.doctor.surroundings import Surroundings
from harness_adapters.installation.client import Account, Client, Registration


@dataclass(frozen=True)
class AClient:
    """A client that is there and registers `registration`. Of its `Client` only what the doctor asks."""

    registration: Registration | None
    name: str = "codex"
    title: str = "Codex"
    place: str = "its settings"

    def is_found(self) -> bool:
        return True

    def registered(self) -> Registration | None:
        return self.registration


def surroundings(
    root: Path,
    *,
    clients: Sequence[AClient | Client] = (),
    variables: Mapping[str, str] | None = None,
    mounts: MountTable = system_mounts,
) -> Surroundings:
    """A HOME at `root` with programs in its `bin`, and the channel of `claude_stand_in`."""
    own = {"HOME": str(root), "PATH": f"{root / 'bin'}{os.pathsep}{os.defpath}", **(variables or {})}
    return Surroundings(
        account=Account(root, own),
        clients=clients,  # type: ignore[arg-type]
        folder=root,
        database=root / "channel" / "channel.db",
        clock=SystemClock(),
        mounts=mounts,
    )


async def all_found(around: Surroundings) -> list[Examined]:
    """A whole examination."""
    return [each async for each in examine(around)]


async def found(around: Surroundings, subject: str) -> list[Finding]:
    """What a whole examination says of one subject."""
    return [each.finding for each in await all_found(around) if each.subject == subject]


def named(findings: Sequence[Finding], level: Level, words: str) -> Finding:
    """The only finding of this level that holds the words; it says what to do."""
    fitting = [each for each in findings if each.level is level and words in each.proved]
    assert len(fitting) == 1, findings
    assert fitting[0].to_do
    return fitting[0]
