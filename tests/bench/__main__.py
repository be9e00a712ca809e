"""`python -m tests.bench`: the product's speed against floors measured in the same run."""

import argparse
import json
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from tests import campaigns
from tests.bench import codex_turn, commands, idle, ping, send_to_line, start_up, throughput
from tests.bench.figures import Figure, as_json, table
from tests.bench.scale import FULL, QUICK, Scale

BENCHES: Mapping[str, Callable[[Path, Scale], Awaitable[list[Figure]]]] = {
    "send": send_to_line.measure,
    "throughput": throughput.measure,
    "server": start_up.measure_server,
    "streamer": start_up.measure_streamer,
    "commands": commands.measure,
    "ping": ping.measure,
    "idle": idle.measure,
    "codex": codex_turn.measure,
}


def main() -> int:
    """Measure, print a table, write JSON; 1 if a limit is not held."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=BENCHES, action="append", help=f"one of {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="few repeats: shows that it runs, says nothing of speed")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there too")
    options = parser.parse_args()
    measured: list[tuple[str, Figure]] = []
    for name in options.only or BENCHES:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            figures = campaigns.run(BENCHES[name], Path(folder), QUICK if options.quick else FULL)
        print(table([(name, figure) for figure in figures]), end="\n\n", flush=True)
        measured += [(name, figure) for figure in figures]
    if options.json:
        machine = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": platform.platform()}
        figures_as_json = [as_json(name, figure) for name, figure in measured]
        options.json.write_text(json.dumps({"machine": machine, "figures": figures_as_json}, indent=1))
    return int(any(figure.holds is False for _, figure in measured))


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
