"""Processes killed at random instants, one after another in one world, while messages keep coming.

An instant is a place drawn from all that the process passes, by count, and then a number of microseconds after it
or, inside a write, of bytes: between two places lies no wait for anything but the system. A kill costs one start.
"""

from collections.abc import Iterator
from random import Random

from fakes.faults import set_faults
from tests.crash.cases import (
    CLAUDE_ROLE,
    CODEX_ROLE,
    LONG,
    Case,
    last_server,
    last_streamer,
    server_dies,
    streamer_dies,
)
from tests.crash.places import SERVER_METHODS, SERVER_PLACES
from tests.crash.world import World

KILLS_A_WORLD = 20
"""Each leaves a message or two that the next one looks for; a thread's queue holds 100."""

SOON_US = 3_000
"""The longest time between two places of a quiet process."""

OF_SERVERS = 0.25
"""Of the kills on Codex's side so many are the app-server's; the others are our server's."""

PASSINGS = {"monitor": 30, "queue": 60}
"""As many places a process passes for its messages; what is drawn beyond its life does not come, and is drawn anew."""


def draw(receiver: str, dice: Random) -> Case:
    """One random death."""
    if receiver == "queue" and dice.random() < OF_SERVERS:
        place, method = dice.choice(SERVER_PLACES), dice.choice(SERVER_METHODS)
        return Case(receiver, server_faults=f"{place}:{method}#{dice.randint(1, 2)}:die")
    nth = dice.randint(1, PASSINGS[receiver])
    what = f"die={dice.random():.3f}" if dice.random() < 0.3 else f"soon={dice.randint(1, SOON_US)}"
    return Case(receiver, (f"*:*#{nth}:{what}",))


def drawn(receiver: str, dice: Random) -> Iterator[Case]:
    while True:
        yield draw(receiver, dice)


async def kill_at_random(world: World, receiver: str, seed: int, kills: int) -> int:
    """Kill `kills` processes of one side; how many had to be started for it."""
    dice = Random(seed)
    role = CLAUDE_ROLE if receiver == "monitor" else CODEX_ROLE
    killed = started = 0
    for case in drawn(receiver, dice):
        if killed == kills:
            break
        await world.send(dice.choice(("short", LONG)), role)
        started += 1
        if receiver == "monitor":
            killed += await streamer_dies(world, case.faults[0])
        else:
            killed += await _one_of_codex_dies(world, case)
    await (last_streamer(world) if receiver == "monitor" else last_server(world))
    return started


async def _one_of_codex_dies(world: World, case: Case) -> bool:
    set_faults(world.home, case.server_faults)
    came = await server_dies(world, case.faults[0] if case.faults else "")
    came = came or any(times for times in world.home.passages().values())
    set_faults(world.home, "")
    return came
