"""`seen`, held against what the model was really shown: each side's real harness, with servers and streamers killed.

    python -m tests.real.seen_agreement [--messages 200] [--seed N] [--side codex|claude] [--write]

What the model was shown is read from the bodies of the requests that its fake endpoint received. Exit status 1 if
the two disagree, or anything was lost or given twice. `--write` puts the tables into RELIABILITY.md.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

import anyio
import pytest

from harness_adapters.commands.progress import Show
from tests import reliability_page
from tests.campaigns import progress, until_interrupted
from tests.real.binaries import CLAUDE_VERSION, CODEX_VERSION, claude_binary, codex_binary
from tests.real.seen_by_claude import seen_by_claude
from tests.real.seen_by_codex import seen_by_codex
from tests.real.seen_verdict import Verdict

SIDES = {"codex": f"Codex {CODEX_VERSION}", "claude": f"Claude Code {CLAUDE_VERSION}"}


async def run_side(
    side: str, messages: int, seed: int, show: Show = lambda _words: None
) -> tuple[Verdict, Counter[str]]:
    """What came of so many messages to a real session, and how many processes of each kind were killed."""
    dice = Random(seed)
    if side == "claude":
        return await seen_by_claude(messages, dice, show)
    with tempfile.TemporaryDirectory(prefix="agent-channel-seen-") as folder:
        return await seen_by_codex(messages, dice, show, Path(folder).resolve())


def report(side: str, messages: int, seed: int, took_s: float, verdict: Verdict, struck: Counter[str]) -> str:
    """The table, and under what it was made."""
    kills = ", ".join(f"{kind} {times}" for kind, times in sorted(struck.items()))
    at_the_end = ", ".join(f"{state} {verdict.states[state]}" for state in ("uncertain", "accepted"))
    rows = [
        ("messages", verdict.messages),
        ("killed by SIGKILL", f"{sum(struck.values())}: {kills}"),
        ("seen", verdict.states["seen"]),
        ("at the end still", at_the_end),
        ("shown to the model, exactly", verdict.shown),
        ("repeated, marked", verdict.repeated),
        *((f"**{name}**", len(found)) for name, found in verdict.troubles.items()),
    ]
    command = f"python -m tests.real.seen_agreement --side {side} --messages {messages} --seed {seed}"
    head = f"`{command}`; {SIDES[side]}; {reliability_page.machine()}; {took_s:.0f} s."
    found = [f"- {name}: {each}" for name, every in verdict.troubles.items() for each in every]
    return "\n".join([f"{head}\n", reliability_page.table((SIDES[side], "figures"), rows), *found])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.seen_agreement", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--messages", type=int, default=200, metavar="N", help="to each side")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--side", choices=list(SIDES), action="append", help="both, if left out")
    parser.add_argument("--write", action="store_true", help="put the tables into RELIABILITY.md")
    chosen = parser.parse_args()
    try:
        codex_binary(), claude_binary()
    except pytest.skip.Exception as missing:
        print(missing, file=sys.stderr)
        return 2
    holds = True
    for side in chosen.side or SIDES:
        print(f"{SIDES[side]}: {chosen.messages} messages, seed {chosen.seed} ...", flush=True)
        began_at = time.monotonic()
        with progress() as (show, _):
            verdict, struck = anyio.run(run_side, side, chosen.messages, chosen.seed, show)
        said = report(side, chosen.messages, chosen.seed, time.monotonic() - began_at, verdict, struck)
        print(said, flush=True)
        if chosen.write:
            reliability_page.put(f"seen {side}", said)
        holds = holds and verdict.holds
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(until_interrupted(main))
