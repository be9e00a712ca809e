"""The skill that teaches an agent to use the channel: a copy for each harness, where it looks for a user's skills.

Claude Code 2.1.332 reads skills/NAME/SKILL.md in its configuration folder (https://code.claude.com/docs/en/skills),
Codex 0.171.0 ~/.agents/skills/NAME/SKILL.md (https://developers.openai.com/codex/skills) and also CODEX_HOME/skills.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.installation.client import SERVER_NAME, Account, CantChange
from harness_adapters.installation.file_change import FileChange, atomic_replace, read

PACKAGED = Path(__file__).parents[1] / "skill" / "SKILL.md"

DIGEST_NAME = ".copied-by-agent-channel"
"""Beside a copy: the SHA-256 of what was copied, which tells an older copy from one that a person changed."""

_FOLDERS = (SERVER_NAME, "skills", ".agents")
"""Those that a copy may have been the first in."""


def skill_files(account: Account) -> Mapping[str, Path]:
    """Where each client's copy belongs, by the client's name."""
    claude = account.folder("CLAUDE_CONFIG_DIR", ".claude")
    return {
        "claude-code": claude / "skills" / SERVER_NAME / "SKILL.md",
        "codex": account.home / ".agents" / "skills" / SERVER_NAME / "SKILL.md",
    }


def planned_copy(path: Path) -> "SkillChange | None":
    """None: it is there as it should be. Raises CantChange where a person has changed the copy."""
    before, packaged = _read(path), PACKAGED.read_bytes()
    if before == packaged:
        return None
    if before is not None and not _is_unchanged(path, before):
        raise CantChange(
            f"{path} was changed since it was copied", f"Compare it with {PACKAGED}; remove it to renew it."
        )
    return SkillChange(FileChange(path, before, packaged))


def planned_removal(path: Path) -> "SkillChange | None":
    """None: there is no copy. Raises CantChange where a person has changed it."""
    before = _read(path)
    if before is None:
        return None
    if not _is_unchanged(path, before):
        raise CantChange(f"{path} was changed since it was copied", "Remove it yourself if nobody needs it.")
    return SkillChange(FileChange(path, before, None))


def _is_unchanged(path: Path, content: bytes) -> bool:
    return content == PACKAGED.read_bytes() or _read(_digest_file(path)) == _digest(content)


@dataclass(frozen=True)
class SkillChange:
    """A copy made, renewed or removed, with the digest beside it."""

    file: FileChange

    def diff(self) -> str:
        """Of a copy that comes or goes whole only that it does: its text is no change of anybody's."""
        if self.file.before is None:
            return f"+++ {self.file.path}\n(a copy of {PACKAGED})\n"
        return f"--- {self.file.path}\n(a copy of ours, unchanged)\n" if self.file.after is None else self.file.diff()

    def apply(self) -> str:
        said, path = self.file.apply(), self.file.path
        with suppress(OSError):  # without it the copy counts as unchanged only while it is the packaged one
            if self.file.after is not None:
                atomic_replace(_digest_file(path), _digest(self.file.after))
            else:
                _digest_file(path).unlink(missing_ok=True)
                for folder in path.parents:  # up to the first that something is in
                    if folder.name in _FOLDERS:
                        folder.rmdir()
        return said


def _digest_file(path: Path) -> Path:
    return path.with_name(DIGEST_NAME)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n"


def _read(path: Path) -> bytes | None:
    try:
        return read(path)
    except OSError as error:
        raise CantChange(f"{path} can't be read: {error.strerror}", "Make it readable, and run it again.") from error
