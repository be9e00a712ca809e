"""What `install` and `uninstall` have in common: show what was planned, ask, do it, and say how it went."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness_adapters.commands.output import EXIT_FAILED, EXIT_OK, EXIT_USAGE, as_json, fail, printable, show
from harness_adapters.installation.client import CantChange, CantRead, Change, Client
from harness_adapters.installation.clients import CLIENTS


@dataclass
class Step:
    """One thing at one client: planned (`change`), not needed (None) or impossible (`problem`).

    `what`: "server", "skill", "plugin" or "permission rule"; `said`: how it went, once it was done.
    """

    client: Client
    what: str
    place: str
    change: Change | None = None
    problem: CantChange | None = None
    said: str = ""

    @property
    def state(self) -> str:
        if self.problem is not None:
            return "by hand"
        if self.change is None:
            return "unchanged"
        return "done" if self.said else "planned"


def planned(client: Client, what: str, place: object, plan: Callable[..., Change | None], *arguments: object) -> Step:
    """The step that `plan(*arguments)` makes, whatever comes of it."""
    step = Step(client, what, str(place))
    try:
        step.change = plan(*arguments)
    except CantChange as problem:
        step.problem = problem
    except CantRead as error:
        step.problem = CantChange(str(error), "Mend it, and run this again.")
    return step


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--client",
        action="append",
        choices=CLIENTS,
        default=[],
        help=f"{', '.join(CLIENTS)}; may be repeated (default: those found)",
    )
    command.add_argument("--dry-run", action="store_true", help="only show what would change, as a unified diff")
    command.add_argument("--yes", action="store_true", help="do it without asking")
    command.add_argument("--json", action="store_true", help="for programs; with --yes or --dry-run")


def carry_out(steps: Sequence[Step], options: argparse.Namespace) -> int:
    """Show, ask and do; the exit status. Without a terminal it asks nobody: --yes or --dry-run is needed then."""
    is_open = any(step.change for step in steps)
    if is_open and not (options.yes or options.dry_run) and (options.json or not on_terminal()):
        fail(
            "nothing was changed: there is no terminal to ask on. "
            "Look with --dry-run at what would change, then run it again with --yes."
        )
        return EXIT_USAGE
    if not options.json:
        show("".join(map(_plan_text, steps)))
    if options.dry_run:
        return _end(steps, options)
    if is_open and not options.yes and not agrees("Make these changes?"):
        fail("nothing was changed")
        return EXIT_FAILED
    with interrupts_wait():
        for step in steps:
            apply(step)
    return _end(steps, options)


def apply(step: Step) -> None:
    """Do what it planned, if anything."""
    try:
        step.said = step.change.apply() if step.change and not step.problem else ""
    except CantChange as problem:
        step.problem = problem


def on_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def agrees(question: str) -> bool:
    """Ask on the terminal. Anything but yes is no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Ctrl-C does not come between two commands that belong together, nor to a client's own that runs just now."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(steps: Sequence[Step], options: argparse.Namespace) -> int:
    if options.json:
        show(as_json({"dry_run": options.dry_run, "steps": [_as_json(step) for step in steps]}))
    else:
        show("".join(f"{step.client.title}, {step.what}: {step.said}\n" for step in steps if step.said))
        for step in steps:
            if step.problem:
                fail(f"{step.client.title}, {step.what}: {step.problem.reason}. {step.problem.by_hand}")
    return EXIT_FAILED if any(step.problem for step in steps) else EXIT_OK


def _plan_text(step: Step) -> str:
    if step.problem:
        return ""
    head = f"{step.client.title}, {step.what}:"
    if step.change is None:
        return f"{head} nothing to change in {step.place}\n"
    return f"{head}\n{''.join(map(_shown, step.change.diff().splitlines()))}\n"


def _shown(line: str) -> str:
    return "\t".join(map(printable, line.split("\t"))) + "\n"


def _as_json(step: Step) -> dict[str, Any]:
    problem = {"reason": step.problem.reason, "by_hand": step.problem.by_hand} if step.problem else None
    return {
        "client": step.client.name,
        "what": step.what,
        "state": step.state,
        "place": step.place,
        "diff": step.change.diff() if step.change else "",
        "said": step.said,
        "problem": problem,
    }
