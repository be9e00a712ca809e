"""`make soak MINUTES=10`: rooms, both receivers, everything killed at random; what was lost, what came twice."""

import argparse
import random
import tempfile
from pathlib import Path

from tests import campaigns, reliability_page
from tests.soak.campaign import TROUBLES, Report, soak_world
from tests.soak.table import table


async def _run(minutes: float, seed: int, trouble: str, keep: Path | None) -> Report:
    with tempfile.TemporaryDirectory(prefix="agent-channel-soak-") as folder:
        root = keep or Path(folder)
        async with soak_world(root, seed, trouble) as soak:
            await soak.run(minutes * 60, lambda what: print(f"... {what}", flush=True))
            return soak.report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--minutes", type=float, default=1.0, help="of trouble; then it waits until all is at rest")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--trouble", choices=list(TROUBLES), default="kill", help="what befalls the processes")
    parser.add_argument("--write", action="store_true", help="put the report into RELIABILITY.md")
    parser.add_argument("--keep", type=Path, help="an empty folder to work in, which is left as it is at the end")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}, {chosen.minutes:g} minutes", flush=True)
    report = campaigns.run(_run, chosen.minutes, chosen.seed, chosen.trouble, chosen.keep)
    said = table(report, chosen.minutes)
    print(said)
    if chosen.write:
        reliability_page.put(f"soak {chosen.trouble}", said)
    return 0 if report.holds else 1


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
