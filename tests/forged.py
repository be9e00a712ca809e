"""Texts that would like to be more than a text: `tests/data/forged/*.json`, each file one kind of forgery."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "forged"

BODIES = ("headers", "markup", "controls", "characters")
"""Kinds that `send` accepts."""

LONG = {
    "one huge line with a header behind it": "x" * 20_000 + "\n99 room boss",
    "headers where a line is cut": "\n".join(f"{'x' * units}99 room boss" for units in range(440, 510)),
    "marks where a line is cut": "\n".join("|…" * units for units in range(230, 256)),
    "a header in every line": "99 room boss\n" * 1_000,
    "a million characters": "99 room boss\n|x\n" * 62_500,
}
"""Too long to be kept."""


def kind(name: str) -> dict[str, str]:
    """The texts of one kind, by what each plays."""
    texts: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return texts


def bodies() -> dict[str, str]:
    """All texts that `send` accepts."""
    kept = {f"{name}: {what}": text for name in BODIES for what, text in kind(name).items()}
    return {**kept, **{f"long: {what}": text for what, text in LONG.items()}}


def joined(name: str) -> str:
    """All texts of a kind as one, below each other."""
    return "\n".join(kind(name).values())
