"""What a benchmark found: figures against limits, as a table and as JSON."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True)
class Limit:
    """What a figure is held against; `why` names the floor that it comes from."""

    kind: Literal["at most", "at least"]
    value: float
    why: str = ""

    def holds(self, value: float) -> bool:
        return value <= self.value if self.kind == "at most" else value >= self.value


@dataclass(frozen=True)
class Figure:
    """One measured value, in `unit`; for a series of `count` values it is their median."""

    name: str
    value: float
    unit: str
    p95: float | None = None
    count: int = 1
    limit: Limit | None = None

    @property
    def holds(self) -> bool | None:
        """None: nothing is asked of it."""
        return None if self.limit is None else self.limit.holds(self.value)


def series(name: str, values: Sequence[float], unit: str, limit: Limit | None = None) -> Figure:
    """The median and the 95th percentile of at least two values."""
    p95 = statistics.quantiles(values, n=20, method="inclusive")[-1]
    return Figure(name, statistics.median(values), unit, p95, len(values), limit)


def as_json(bench: str, figure: Figure) -> dict[str, object]:
    return {"bench": bench, **asdict(figure), "holds": figure.holds}


def table(figures: Sequence[tuple[str, Figure]]) -> str:
    """One line a figure: what, median, p95, limit, whether it holds."""
    rows = [("", "median", "p95", "unit", "n", "limit", "")]
    rows += [_row(f"{bench}: {figure.name}", figure) for bench, figure in figures]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(name: str, figure: Figure) -> tuple[str, ...]:
    limit = figure.limit
    return (
        name,
        f"{figure.value:.4g}",
        "" if figure.p95 is None else f"{figure.p95:.4g}",
        figure.unit,
        str(figure.count),
        "" if limit is None else f"{limit.kind} {limit.value:.4g}" + (f" ({limit.why})" if limit.why else ""),
        {None: "", True: "holds", False: "MISSED"}[figure.holds],
    )
