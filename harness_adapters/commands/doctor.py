"""`agent-channel doctor`: what works here, tried out; `--probe`: whether a message arrives and an answer comes back."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from channel.errors import ChannelError
from harness_adapters.commands.output import (
    EXIT_FAILED,
    aligned,
    as_json,
    database_for_people,
    fail,
    printable,
    show,
)
from harness_adapters.commands.progress import progress_line
from harness_adapters.commands.running import run as run_until_stopped
from harness_adapters.doctor.finding import Examined, Level

WITHIN_S = 120
"""For an agent that is in the middle of something to come to its next message."""

WITHIN_S_MAX = 86_400


def run(database: Path | None, arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if bool(options.role) != options.probe:
        parser().error("--probe needs the names of roles, and they need --probe")
    try:
        examined = run_until_stopped(_probe if options.probe else _examine, database_for_people(database), options)
    except ChannelError as error:
        return fail(error)
    counts = Counter(each.finding.level for each in examined)
    printed = show(_as_json(examined, counts) if options.json else _as_text(examined, counts))
    return EXIT_FAILED if counts[Level.FAIL] else printed


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        prog="agent-channel doctor",
        description="Try out all that messages need: the harnesses, our server in each, the file, the sessions. "
        "With --probe: send each ROLE a message that asks for an answer, and time its way.",
        epilog="exit status: 0 if nothing failed, 1 if something did",
    )
    command.add_argument("--json", action="store_true", help="for programs")
    command.add_argument("--probe", action="store_true", help="only send messages; each wakes its ROLE, for a turn")
    command.add_argument("--room", help="the room of the roles, where several have them")
    within = f"how long to wait for the answers (default: {WITHIN_S})"
    command.add_argument("--within", type=_seconds, default=WITHIN_S, metavar="SECONDS", help=within)
    command.add_argument("role", nargs="*", metavar="ROLE", help="whom to probe")
    return command


async def _examine(database: Path, _options: argparse.Namespace) -> list[Examined]:
    from harness_adapters.doctor.examination import examine  # these take 0.1 s, which --help need not wait for
    from harness_adapters.doctor.surroundings import own_surroundings

    examined = []
    with progress_line() as progress:
        progress("looking …")
        async for each in examine(own_surroundings(database)):
            examined.append(each)
            progress(f"{each.subject}: {printable(each.finding.proved)}")
    return examined


async def _probe(database: Path, options: argparse.Namespace) -> list[Examined]:
    from harness_adapters.doctor.probe import probe

    with progress_line() as progress:
        findings = await probe(database, options.role, options.room, options.within, progress)
    return [Examined("probe", finding) for finding in findings]


def _as_text(examined: Sequence[Examined], counts: Counter[Level]) -> str:
    lines = []
    for subject, finding in examined:
        lines.append((finding.level.value, subject, printable(finding.proved)))
        if finding.to_do:
            lines.append(("", "", f"> {printable(finding.to_do)}"))
    summary = ", ".join(f"{counts[level]} {level.value}" for level in Level)
    return f"{aligned(lines)}\n{summary}\n"


def _as_json(examined: Sequence[Examined], counts: Counter[Level]) -> str:
    findings: list[dict[str, Any]] = [
        {
            "subject": subject,
            "level": finding.level.value,
            "proved": finding.proved,
            "to_do": finding.to_do,
            **({"times_ms": dict(finding.times_ms)} if finding.times_ms else {}),
        }
        for subject, finding in examined
    ]
    return as_json({"findings": findings, "counts": {level.value: counts[level] for level in Level}})


def _seconds(words: str) -> int:
    if not words.isdecimal() or not 1 <= int(words) <= WITHIN_S_MAX:
        raise argparse.ArgumentTypeError(f"{words!r} is no number of seconds from 1 to {WITHIN_S_MAX:,}")
    return int(words)
