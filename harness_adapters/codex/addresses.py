"""The addresses of Codex threads, and whether one is loaded: what is told of a thread without reaching it."""

from pathlib import Path

from harness_adapters.codex.owners import writer_of

HARNESS = "codex"
_BEGINS = "codex:"


def address_of(thread_id: str, home: Path) -> str:
    return f"{_BEGINS}{thread_id}@{home}"


def is_loaded(address: str) -> bool:
    """Whether a process is seen that has the thread of this address loaded."""
    thread_id, _, home = address.removeprefix(_BEGINS).partition("@")
    return writer_of(Path(home), thread_id) is not None
