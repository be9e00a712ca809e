"""A command for Monitor: writes what a schedule says, when it says.

`python monitored.py SCHEDULE`: a JSON file with `steps`, a list of [seconds since the start, text], the
`exit_code`, and `last_words`, written at a SIGTERM.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    schedule = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    started_at = time.monotonic()

    def say_last_words(number: int, frame: object) -> None:
        write(schedule["last_words"])
        os._exit(0)

    signal.signal(signal.SIGTERM, say_last_words)
    for at_s, text in schedule["steps"]:
        time.sleep(max(0.0, started_at + at_s - time.monotonic()))
        write(text)
    return int(schedule["exit_code"])


def write(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
