"""The product's two entrances with a fault set and another clock; else they are what a harness starts.

python -I -m tests.crash.faulted [--fault SPEC] --trace FILE --clock TEXT {server,monitor} --db FILE [--session KEY]
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from channel.fault_places import set_hook
from tests.crash.faults import Fault, FaultHook
from tests.crash.hurry import CommonClock


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", type=Fault.parse)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--clock", type=CommonClock.from_text, required=True)
    parser.add_argument("entrance", choices=("server", "monitor"))
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--session")
    chosen = parser.parse_args(arguments)
    set_hook(FaultHook(chosen.fault, chosen.trace))
    if chosen.entrance == "monitor":
        from harness_adapters.claude.monitor_stream import stream
        from harness_adapters.claude.pacing import MONITOR_LIMITS

        return anyio.run(stream, chosen.db, chosen.session, MONITOR_LIMITS, chosen.clock)
    from harness_adapters.mcp_server import serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    anyio.run(serve, chosen.db, chosen.clock)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
