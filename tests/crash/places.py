"""All cases: each place that a receiver's life passes, singly, then stopped and taken over from, then in pairs.

The places are not listed here: a life without a fault tells which it passes, and how often.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from tests.crash.cases import RENEWAL, Case

IN_PART = {
    "queue, own server": ("join", "take_lease", "release_lease"),
    "queue, daemon": ("transport", "request", "hand_over"),
    "sender": ("join", "send", "rename", "leave"),
    "queue, dead daemon": ("transport_failed", "transport_opened"),
    "Claude to Codex": ("hand_over", "flush", "take_lease"),
    "Codex to Claude": ("hand_over", "thread/queue/add", "take_lease"),
}
"""Receivers whose other places are walked under one of the others: words of the places that are theirs."""

SERVER_PLACES = ("before_effect", "after_effect", "after_answer")
SERVER_METHODS = ("initialize", "thread/queue/list", "thread/queue/add", "thread/items/list")

RENEWALS = (f"uncommitted:{RENEWAL}", f"committed:{RENEWAL}")
"""A short life passes them or not: walked in any case."""


def walked(receiver: str, passings: Sequence[str]) -> list[str]:
    """The places of a life that are walked under this receiver, `place:of#n`, each passing of each."""
    words = IN_PART.get(receiver)
    passed: Counter[str] = Counter()
    found = []
    for passing in passings:
        passed[passing] += 1
        if RENEWAL not in passing and (words is None or any(word in passing for word in words)):
            found.append(f"{passing}#{passed[passing]}")
    return [*found, *(f"{passing}#1" for passing in RENEWALS if receiver in ("monitor", "queue, own server"))]


def singles(receiver: str, places: Sequence[str]) -> Iterator[Case]:
    """A process dies at each place."""
    yield from (Case(receiver, (f"{place}:die",)) for place in places)


def stopped(receiver: str, places: Sequence[str]) -> Iterator[Case]:
    """A process is stopped at each place, its lease runs out, another serves, and then it goes on."""
    if receiver in ("monitor", "queue"):
        yield from (Case(receiver, (f"{place}:stop",)) for place in places if "release" not in place)


def of_the_server(times: int) -> Iterator[Case]:
    """The app-server dies around each answer: the child, and the daemon with a child to fall back to."""
    for receiver, place, method, nth in product(
        ("queue", "queue, daemon"), SERVER_PLACES, SERVER_METHODS, range(1, times + 1)
    ):
        if method != "initialize" or nth == 1:
            yield Case(receiver, server_faults=f"{place}:{method}#{nth}:die")


def pairs(receiver: str, places: Sequence[str], number: int, dice: Random) -> list[Case]:
    """A process dies at one place and its successor at another: as many as asked for, drawn from all."""
    all_pairs = list(product(places, repeat=2))
    drawn = dice.sample(all_pairs, min(number, len(all_pairs)))
    return [Case(receiver, (f"{first}:die", f"{second}:die")) for first, second in drawn]


def first_passings(places: Sequence[str]) -> list[str]:
    return [place for place in places if place.endswith("#1")]
