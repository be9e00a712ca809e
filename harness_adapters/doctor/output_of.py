"""What a program prints when it is run once."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from harness_adapters.doctor.surroundings import Surroundings

RUN_S_MAX = 30
"""The slowest of the harnesses' own commands takes 2 s on a quiet machine."""


class Ran(NamedTuple):
    """`status`: None where it did not start or did not end in time; `errors` says so then."""

    status: int | None
    output: str
    errors: str

    @property
    def last_words(self) -> str:
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with status {self.status}"


async def output_of(command: Sequence[str | Path], around: Surroundings) -> Ran:
    """Run it in the sessions' folder, with a person's environment."""
    try:
        with anyio.move_on_after(RUN_S_MAX):
            done = await anyio.run_process(
                list(map(str, command)), check=False, env=around.variables, cwd=around.folder, stdin=subprocess.DEVNULL
            )
            return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    except OSError as error:
        return Ran(None, "", str(error))
    return Ran(None, "", f"it did not end within {RUN_S_MAX} s")
