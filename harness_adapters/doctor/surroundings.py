"""All that the doctor takes from outside, so that a test can give it another world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from channel.clock import Clock, SystemClock
from channel.mounts import MountTable, system_mounts
from harness_adapters.claude.session import config_folder
from harness_adapters.installation.claude_code import ClaudeCode
from harness_adapters.installation.client import Account, Client
from harness_adapters.installation.clients import all_clients


@dataclass(frozen=True)
class Surroundings:
    """`folder`: the one that sessions are started in. `database`: the file that a person's commands use."""

    account: Account
    clients: Sequence[Client]
    folder: Path
    database: Path
    clock: Clock
    mounts: MountTable = system_mounts

    @property
    def variables(self) -> Mapping[str, str]:
        return self.account.variables

    @property
    def codex(self) -> Path | None:
        """The program that a person starts as `codex` here."""
        return self.account.program("codex")

    @property
    def claude(self) -> Path | None:
        """On PATH, or where its own installers put it."""
        return ClaudeCode(self.account).program()

    @property
    def codex_home(self) -> Path:
        return self.account.folder("CODEX_HOME", ".codex")

    @property
    def claude_config(self) -> Path:
        return config_folder({"HOME": str(self.account.home), **self.variables})

    @property
    def channel_without_option(self) -> Path:
        """Where a server of this account has its channel if it is not told."""
        return self.account.home / ".agent-channel" / "channel.db"


def own_surroundings(database: Path) -> Surroundings:
    """Those of this process."""
    account = Account.own()
    return Surroundings(account, all_clients(account), Path.cwd(), database, SystemClock())
