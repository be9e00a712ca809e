"""The port: one coding agent that can be told of our server. What each looks like is in a file of its own.

    Claude Code     claude_code.py     through `claude mcp ...`
    Codex           codex.py           its config.toml
    Cursor ...      json_clients.py    a JSON file

`clients.py` lists them. Nothing here prints or asks: the commands do.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

SERVER_NAME = "agent-channel"
"""The name that every client registers the server under."""

SERVER_MODULE = "harness_adapters.mcp_server"
SERVER_SCRIPT = "agent-channel-mcp"

VERSION_S_MAX = 20
"""For `PROGRAM --version`: a bundled Node program takes about a second, on a busy machine ten."""


@dataclass(frozen=True)
class Account:
    """Whose clients they are: the folders and variables that decide where each has its configuration."""

    home: Path
    variables: Mapping[str, str]

    @classmethod
    def own(cls) -> "Account":
        """That of this process."""
        return cls(Path.home(), os.environ)

    def program(self, *names: str) -> Path | None:
        """The first of the programs that is on PATH, as an absolute path."""
        for name in names:
            if found := shutil.which(name, path=self.variables.get("PATH", os.defpath)):
                return Path(found).absolute()
        return None

    def folder(self, variable: str, default: str) -> Path:
        """The folder that a variable names, else `default` under the home folder."""
        named = self.variables.get(variable)
        return Path(named).expanduser() if named else self.home / default


@dataclass(frozen=True)
class Registration:
    """What a client is told to run as our server.

    `env` is set for it, `env_vars` are passed on from the client's own environment where it would not (Codex).
    `enabled`: False where the client keeps it without starting it.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    env_vars: tuple[str, ...] = ()
    enabled: bool = True

    @property
    def words(self) -> tuple[str, ...]:
        return (self.command, *self.args)

    @property
    def is_agent_channel(self) -> bool:
        """Whether it is a server of ours, of this installation or another."""
        return any(word == SERVER_MODULE or SERVER_SCRIPT in word for word in self.words)

    @property
    def database(self) -> Path | None:
        """The file that it names with --db; None: the default one."""
        for place, word in enumerate(self.args):
            if word == "--db" and place + 1 < len(self.args):
                return Path(self.args[place + 1])
            if word.startswith("--db="):
                return Path(word.removeprefix("--db="))
        return None


def own_registration(database: Path | None) -> Registration:
    """How this very installation's server is started. `database`: None is the default one, which needs no --db.

    By the interpreter's absolute path, isolated: a client starts it with another PATH and in the folder of some
    project, whose own modules may have the names of ours.
    """
    db = () if database is None else ("--db", str(database))
    return Registration(sys.executable, ("-I", "-m", SERVER_MODULE, *db))


def cache_around(installation: Path) -> Path | None:
    """The cache that an installation is in, as uvx makes them (uv 0.13): what is registered from there is gone soon."""
    return next((folder for folder in installation.parents if (folder / "CACHEDIR.TAG").is_file()), None)


class CantRead(Exception):
    """A client's configuration can't be read: the reason."""


class CantChange(Exception):
    """It is left alone. `reason`: why, `by_hand`: what the person does instead."""

    def __init__(self, reason: str, by_hand: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.by_hand = by_hand


def require_ours(present: Registration | None, place: str) -> None:
    """Another program may have taken our name: raises CantChange."""
    if present is not None and not present.is_agent_channel:
        raise CantChange(
            f"{place} registers another program as {SERVER_NAME}: {present.command}",
            "Remove it there, or give it another name, and run this again.",
        )


class Change(Protocol):
    """Something that was planned and not done yet."""

    def diff(self) -> str:
        """What it would change, for a person: a unified diff."""
        ...

    def apply(self) -> str:
        """Do it; one line on what was done. Raises CantChange if it can't be done any more."""
        ...


class Client(Protocol):
    """One coding agent of an account."""

    @property
    def name(self) -> str:
        """As `--client` takes it."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def place(self) -> str:
        """Where its registrations are, for a person."""
        ...

    def program(self) -> Path | None:
        """Its program, where one is on PATH."""
        ...

    def is_found(self) -> bool:
        """Whether the account has it: its program, or its configuration."""
        ...

    def registered(self) -> Registration | None:
        """What it starts under our name. Raises CantRead."""
        ...

    def planned_install(self, wanted: Registration) -> Change | None:
        """None: it stands there already. Raises CantChange; CantRead."""
        ...

    def planned_removal(self) -> Change | None:
        """None: there is nothing of ours. Raises CantChange; CantRead."""
        ...


class Version(NamedTuple):
    """What a program answered to --version. `text`: None if it failed, `reason` says how."""

    text: str | None
    reason: str = ""


def version_of(program: Path, account: Account) -> Version:
    """Its version, by asking it."""
    try:
        done = subprocess.run(
            [program, "--version"],
            check=False,
            env=dict(account.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S_MAX,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Version(None, str(error))
    first = (done.stdout.strip() or done.stderr.strip()).partition("\n")[0]
    return Version(first) if done.returncode == 0 and first else Version(None, first or f"status {done.returncode}")
