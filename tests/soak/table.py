"""A soak's report as a table for people."""

from collections.abc import Iterator

from tests import reliability_page
from tests.soak.campaign import ROOMS, Report

SHOWN_MAX = 20
BEFELL = {"kill": "killed by SIGKILL", "stop": "stopped by SIGSTOP the whole time", "lock": "locked the whole time"}


def table(report: Report, minutes: float) -> str:
    verdict = report.verdict
    struck = ", ".join(f"{kind} {count}" for kind, count in sorted(report.struck.items()))
    states = ", ".join(f"{state} {count}" for state, count in sorted(verdict.states.items()))
    (files, mib), (files_after, mib_after) = report.held[0], report.held[-1]
    rows = [
        ("messages sent", f"{verdict.messages}, as {verdict.deliveries} deliveries in {len(ROOMS)} rooms"),
        ("`send` without an answer, its server killed", str(report.unanswered)),
        ("`send` refused", str(sum(report.refused.values()))),
        (BEFELL[report.trouble], f"{sum(report.struck.values())}: {struck}"),
        ("Monitors that told something", str(report.monitors)),
        ("states in the end", states),
        ("shown to a session", str(verdict.shown)),
        ("repeated to Claude Code, marked", str(verdict.repeated)),
        ("uncertain", str(verdict.states["uncertain"])),
        ("**lost**", str(len(verdict.lost) + len(verdict.open))),
        ("**twice**", str(len(verdict.twice))),
        ("wrong text or order, stored in part", str(len(verdict.wrong))),
        ("processes left", str(len(report.orphans))),
        ("open files of a server that lived throughout", f"{files}, then {files_after}"),
        ("its memory, MiB", f"{mib}, then {mib_after}"),
        ("bells left", str(report.bells)),
    ]
    command = f"`python -m tests.soak --minutes {minutes:g} --trouble {report.trouble} --seed {report.seed}`"
    head = f"{command}; {reliability_page.machine()}; both harnesses played by the fakes."
    return "\n".join([f"{head}\n", reliability_page.table(("what", "figures"), rows), *_troubles(report)])


def _troubles(report: Report) -> Iterator[str]:
    verdict = report.verdict
    for text, count in report.refused.items():
        yield f"- refused {count} times: {text}"
    for word, found in (
        ("lost", verdict.lost),
        ("not at rest", verdict.open),
        ("twice", verdict.twice),
        ("wrong", verdict.wrong),
        ("left", report.orphans),
    ):
        for each in found[:SHOWN_MAX]:
            yield f"- {word}: {each}"
