"""The real `agent-channel view`, started as a person does, on a channel of a test."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.stuck_deliveries import COMMAND_LINE

END_S = 20


@dataclass
class Served:
    """`address` has the token behind its `#`."""

    process: subprocess.Popen[str]
    address: str

    @property
    def origin(self) -> str:
        return self.address.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.address.partition("/#")[2]

    def end(self, by: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Its exit status, and what it said since its address."""
        self.process.send_signal(by)
        stdout, stderr = self.process.communicate(timeout=END_S)
        return self.process.returncode, stdout, stderr


@contextmanager
def served(database: Path, *arguments: str) -> Iterator[Served]:
    """Until the body ends, if it has not ended it itself."""
    process = subprocess.Popen(
        [*COMMAND_LINE, "--db", str(database), "view", "--json", *arguments],
        env={"HOME": str(database.parent.parent), "PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        yield Served(process, json.loads(line)["address"])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=END_S)
