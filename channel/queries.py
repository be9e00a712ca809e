"""Named queries: `sql/queries.sql`, each after a line `-- name: what it is for`."""

import re
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "sql" / "queries.sql"
_HEAD = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)


@cache
def load_queries() -> dict[str, str]:
    """All named queries. Raises RuntimeError for a name given twice, or one with no statement."""
    pieces = _HEAD.split(FILE.read_text(encoding="utf-8"))
    names, texts = pieces[1::2], [text.strip() for text in pieces[2::2]]
    if len(set(names)) != len(names):
        raise RuntimeError("queries.sql gives a name twice")
    for name, text in zip(names, texts, strict=True):
        if all(not line or line.startswith("--") for line in text.splitlines()):
            raise RuntimeError(f"queries.sql has no statement under {name}: does a comment line read `-- word: ...`?")
    return dict(zip(names, texts, strict=True))


def sql(name: str) -> str:
    """The text of one named query. Raises KeyError."""
    return load_queries()[name]
