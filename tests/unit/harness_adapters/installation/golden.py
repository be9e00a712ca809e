"""Configurations as people and programs leave them, with what an install makes of each, and an uninstall of that.

tests/data/installation/CLIENT/CASE holds `before`, `installed`, and `removed` where ours was there already, so that
an uninstall does not lead back to `before`. A case called `left_alone_...` has no other file: it is not touched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.installation.client import Account, Change, Registration
from harness_adapters.installation.clients import CLIENTS
from harness_adapters.installation.file_client import FileClient

DATA = Path(__file__).parents[3] / "data" / "installation"

PYTHON = "/opt/agent-channel/bin/python"
WANTED = Registration(PYTHON, ("-I", "-m", "harness_adapters.mcp_server"))

LEFT_ALONE = "left_alone_"


@dataclass(frozen=True)
class Case:
    """`client` has `before` as its whole configuration."""

    client: str
    name: str

    def content(self, which: str) -> bytes:
        (path,) = (DATA / self.client / self.name).glob(f"{which}.*")
        return path.read_bytes()

    @property
    def after_uninstall(self) -> bytes:
        is_ours_before = any((DATA / self.client / self.name).glob("removed.*"))
        return self.content("removed" if is_ours_before else "before")

    def place_at(self, account: Account) -> Path:
        """Write `before` where the client of this account has it."""
        path = client_of(self.client, account).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content("before"))
        return path

    def __str__(self) -> str:
        return f"{self.client}-{self.name}"


def cases(*clients: str, left_alone: bool = False) -> list[Case]:
    return [
        Case(client, folder.name)
        for client in clients
        for folder in sorted((DATA / client).iterdir())
        if folder.name.startswith(LEFT_ALONE) == left_alone
    ]


def account_at(home: Path) -> Account:
    return Account(home, {"HOME": str(home), "PATH": "/usr/bin:/bin"})


def client_of(name: str, account: Account) -> FileClient:
    client = CLIENTS[name](account)
    assert isinstance(client, FileClient)
    return client


def apply(plan: Callable[[], Change | None]) -> str:
    """Do what is planned, which must be something."""
    change = plan()
    assert change is not None
    return change.apply()
