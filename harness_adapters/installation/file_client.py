"""A client that keeps its servers in one file. What the file looks like inside is a `Syntax`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness_adapters.installation.client import SERVER_NAME, Account, CantChange, CantRead, Registration, require_ours
from harness_adapters.installation.file_change import FileChange, as_bytes, backup_of, read_text


class NotEditable(Exception):
    """The text has a form that can't be edited without touching what is not ours: the reason."""


def registration_of(entry: Any) -> Registration:
    """What an entry of the usual fields registers: `command`, and where they are `args`, `env` and `env_vars`.

    An element of `env_vars` may be an object with a `name`. Raises NotEditable where a field is of a wrong kind.
    """
    if not isinstance(entry, dict):
        raise NotEditable(f"what it registers as {SERVER_NAME} is no object")
    if not isinstance(entry.get("command"), str):
        raise NotEditable(f"what it registers as {SERVER_NAME} has no command")
    env_vars = [each.get("name") if isinstance(each, dict) else each for each in _field(entry, "env_vars", list)]
    if not all(isinstance(each, str) for each in env_vars):
        raise _wrong("env_vars")
    return Registration(
        entry["command"],
        tuple(map(str, _field(entry, "args", list))),
        {name: str(value) for name, value in _field(entry, "env", dict).items()},
        tuple(map(str, env_vars)),
    )


def _field(entry: dict[str, Any], name: str, kind: Callable[[], Any]) -> Any:
    """An empty one where there is none."""
    value = entry.get(name)
    if value is None:
        return kind()
    if type(value) is not kind:
        raise _wrong(name)
    return value


def _wrong(field: str) -> NotEditable:
    return NotEditable(f"{field} of what it registers as {SERVER_NAME} is of a wrong kind")


class Syntax(Protocol):
    """How a file of one kind holds what is registered under our name. Text in, text out; all raise NotEditable."""

    def entry(self, text: str) -> Registration | None:
        """What is registered."""
        ...

    def with_entry(self, text: str, wanted: Registration) -> str:
        """The text with ours in it. What else stands in ours is kept; the same text, if ours is there as wanted."""
        ...

    def without_entry(self, text: str, original: str | None) -> str:
        """The text without ours, and without what encloses it if that is left empty and is not in `original`.

        `original`: as it was before ours; None if nobody knows.
        """
        ...

    def snippet(self, wanted: Registration) -> str:
        """What a person writes into the file."""
        ...


@dataclass(frozen=True)
class FileClient:
    """`find_file`: which of the places counts now; `programs`: the names of its program."""

    name: str
    title: str
    account: Account
    programs: tuple[str, ...]
    find_file: Callable[[Account], Path]
    syntax: Syntax

    @property
    def path(self) -> Path:
        return self.find_file(self.account)

    @property
    def place(self) -> str:
        return str(self.path)

    def program(self) -> Path | None:
        return self.account.program(*self.programs)

    def is_found(self) -> bool:
        return self.program() is not None or self.path.parent.is_dir()

    def registered(self) -> Registration | None:
        text = self._read()
        try:
            return self._entry(text)
        except NotEditable as error:
            raise CantRead(f"{self.path}: {error}") from error

    def planned_install(self, wanted: Registration) -> FileChange | None:
        before = self._read()
        text = before or ""
        try:
            present = self.syntax.entry(text)
            require_ours(present, self.place)
            after = self.syntax.with_entry(text, wanted)
        except NotEditable as error:
            by_hand = f"Write this into it yourself:\n\n{self.syntax.snippet(wanted)}"
            raise CantChange(f"{self.path} is left as it is: {error}", by_hand) from error
        if after == before:
            return None
        keep_before = present is None or self._original() is None
        return FileChange(self.path, as_bytes(before), as_bytes(after), keep_before=keep_before)

    def planned_removal(self) -> FileChange | None:
        before, original = self._read(), self._original()
        try:
            entry = self._entry(before)
            if before is None or entry is None:
                return None
            require_ours(entry, self.place)
            if original is not None and self._is_install_of(original, entry, before):
                return FileChange(self.path, as_bytes(before), as_bytes(original) or None, drop_backup=True)
            after = self.syntax.without_entry(before, original)
        except NotEditable as error:
            by_hand = "Take what is registered as agent-channel out of it yourself."
            raise CantChange(f"{self.path} is left as it is: {error}", by_hand) from error
        return FileChange(self.path, as_bytes(before), as_bytes(after), drop_backup=after == original)

    def _entry(self, text: str | None) -> Registration | None:
        """A text without our name has no entry of ours, also where it can't be parsed."""
        return None if text is None or SERVER_NAME not in text else self.syntax.entry(text)

    def _is_install_of(self, original: str, entry: Registration, text: str) -> bool:
        """Whether an install made `text` of `original` and nobody changed it since: then every byte can be restored."""
        try:
            return self._entry(original) is None and self.syntax.with_entry(original, entry) == text
        except NotEditable:
            return False

    def _original(self) -> str | None:
        try:
            return read_text(backup_of(self.path))
        except (OSError, UnicodeDecodeError):
            return None

    def _read(self) -> str | None:
        try:
            return read_text(self.path)
        except OSError as error:
            raise CantRead(f"{self.path} can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CantRead(f"{self.path} is not UTF-8 text") from error
