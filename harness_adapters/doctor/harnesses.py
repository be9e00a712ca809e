"""Which harnesses there are, and whether their programs run."""

from collections.abc import AsyncIterator
from pathlib import Path

from harness_adapters.doctor.finding import Finding, failed, passed, warned
from harness_adapters.doctor.surroundings import Surroundings
from harness_adapters.installation.client import Account, version_of


async def found_programs(around: Surroundings) -> AsyncIterator[Finding]:
    """Codex and Claude Code, each asked for its version."""
    yield _program("Codex", "codex", around.codex, around.codex_home, around.account)
    yield _program("Claude Code", "claude", around.claude, around.claude_config, around.account)


def _program(title: str, name: str, program: Path | None, folder: Path, account: Account) -> Finding:
    if program is None:
        searched = f"no `{name}` on PATH ({account.variables.get('PATH', 'not set')})"
        if folder.is_dir():
            return failed(
                f"{title}: {searched}, though its folder {folder} is there; nothing of it could be tried",
                f"Run the doctor in a shell that finds `{name}`, or install it.",
            )
        return warned(f"{title}: {searched} and no {folder}", f"Nothing, if you do not use {title}.")
    version = version_of(program, account)
    if version.text is None:
        return failed(f"{title}: {program} --version fails: {version.reason}", f"Install {title} anew.")
    return passed(f"{title}: {program} runs, and says {version.text}")
