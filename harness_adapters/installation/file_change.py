"""One configuration file as it is and as it would be: shown as a difference, and replaced in one step."""

import difflib
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from channel.place import make_folders
from harness_adapters.installation.client import CantChange

BACKUP_ENDING = ".before-agent-channel"

NEW_FILE_MODE = 0o600
"""Such files come to hold keys; Codex makes its own with this mode too (0.171.0)."""


def backup_of(path: Path) -> Path:
    """Where the file is kept as it was before anything of ours was in it. It also says what an uninstall restores."""
    return path.with_name(path.name + BACKUP_ENDING)


def read(path: Path) -> bytes | None:
    """None: there is no such file. Raises OSError, also for what is no ordinary file: a FIFO has no end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "it is no ordinary file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def read_text(path: Path) -> str | None:
    """As UTF-8, line ends as they are. None: there is no such file. Raises OSError, UnicodeDecodeError."""
    content = read(path)
    return None if content is None else content.decode()


def as_bytes(text: str | None) -> bytes | None:
    """The content of a FileChange."""
    return None if text is None else text.encode()


@dataclass(frozen=True)
class FileChange:
    """`before` and `after`: the whole content, None where there is no file.

    `keep_before`: leave a backup beside it, an empty one if there is no file yet; `drop_backup`: it is of no use
    any more.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    keep_before: bool = False
    drop_backup: bool = False

    def diff(self) -> str:
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(
                _lines(self.before),
                _lines(self.after),
                "/dev/null" if self.before is None else str(self.path),
                "/dev/null" if self.after is None else str(self.path),
            )
        )

    def apply(self) -> str:
        """Replace the file, if it still is as it was read. Raises CantChange, and then nothing was changed."""
        try:
            if read(self.path) != self.before:
                raise CantChange(f"{self.path} was changed by another program just now", "Run it again.")
            if self.keep_before:
                atomic_replace(backup_of(self.path), self.before or b"", like=self.path)
            if self.after is None:
                self.path.resolve().unlink()  # a link stays one here too
            else:
                atomic_replace(self.path, self.after)
        except OSError as error:
            raise CantChange(
                f"{self.path} can't be written: {error.strerror or error}",
                "Make the file and its folder writable for this account, and run it again.",
            ) from error
        if self.drop_backup:
            with suppress(OSError):
                backup_of(self.path).unlink()
        return self._done()

    def _done(self) -> str:
        if self.after is None:
            return f"removed {self.path}"
        if self.keep_before and self.before is not None:
            return f"changed {self.path}; as it was: {backup_of(self.path)}"
        return f"changed {self.path}" if self.before is not None else f"made {self.path}"


def atomic_replace(path: Path, content: bytes, like: Path | None = None) -> None:
    """Write a file whole or not at all, with the mode and the owner that it has. A link stays one: its target changes.

    `like`: the file whose mode and owner a new one gets. Raises OSError, also where the owner can't be kept.
    """
    target = path.resolve()
    make_folders(target.parent)
    model = next((each.stat() for each in (target, like) if each is not None and each.exists()), None)
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(None, "it is read-only")  # a folder that may be written would let it be replaced
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), NEW_FILE_MODE if model is None else model.st_mode & 0o7777)
            if model is not None:
                _give_to(file.fileno(), model)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _give_to(descriptor: int, model: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (model.st_uid, model.st_gid):
        os.fchown(descriptor, model.st_uid, model.st_gid)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode(errors="replace").splitlines(keepends=True)
