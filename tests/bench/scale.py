"""How much is measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Repeats enough for medians that hold on a shared machine; `QUICK`: only that it runs."""

    round_trips: int
    handled_messages: int
    sends_at_the_store: int
    sends_through_mcp: int
    starts: int
    pings: int
    idle_s: float
    codex_turns: int


FULL = Scale(
    round_trips=100,
    handled_messages=100_000,
    sends_at_the_store=3_000,
    sends_through_mcp=2_000,
    starts=25,
    pings=100,
    idle_s=60.0,
    codex_turns=15,
)

QUICK = Scale(
    round_trips=5,
    handled_messages=2_000,
    sends_at_the_store=200,
    sends_through_mcp=100,
    starts=3,
    pings=10,
    idle_s=5.0,
    codex_turns=3,
)
