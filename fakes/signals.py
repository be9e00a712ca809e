"""Named signals between a test and the fake processes of one CODEX_HOME: empty files in a folder.

A fake that comes to a held place sets `reached-<name>` and waits for `<name>`, so a test steps it without
sleeping:

    await home.signals.wait("reached-lost")   # the fake stands between effect and answer
    home.signals.set("lost")                  # and goes on

Files, because the two sides are processes and one of them may be killed at any moment.
"""

import re
from pathlib import Path

import anyio

LOOK_AGAIN_S = 0.005  # a stat is cheap; only tests wait here
NAME = re.compile(r"[A-Za-z0-9_.-]+")


class Signals:
    """The signals set so far under `folder`, which is made on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set(self, name: str) -> None:
        """Set `name` for good; setting it twice is harmless. Raises ValueError for a name with other
        characters than letters, digits, `_`, `.` and `-`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path(name).touch()

    def is_set(self, name: str) -> bool:
        return self._path(name).exists()

    async def wait(self, name: str) -> None:
        """Return once `name` is set. Has no limit of its own: wait under `anyio.fail_after`."""
        while not self.is_set(name):  # noqa: ASYNC110 - the other side is a process
            await anyio.sleep(LOOK_AGAIN_S)

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a signal: use letters, digits, '_', '.' and '-'")
        return self._folder / name
