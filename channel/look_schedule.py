"""When an open delivery is looked for again. Data and one pure function; who looks is `waiters`."""

from channel.delivery_states import State

FIRST_LOOKS_S = (1, 2, 5, 10, 10, 30)
"""After an acceptance: most messages are read within seconds."""

UNCERTAIN_LOOKS = 18
"""An uncertain delivery is looked for every 10 s this often (three minutes), and more seldom after."""

UNCERTAIN_LOOK_S = 10
LOOK_S_MAX = 600


def look_after_s(state: State, looks: int) -> int | None:
    """Seconds from a look (the `looks`-th; 0: from the transition) to the next; None: nothing to look for.

    One that is handed over is looked for only once its waiter is gone, and then as one that is accepted.

    It grows to ten minutes and never ends: what is not settled is never given up.
    """
    if state is State.UNCERTAIN:
        return UNCERTAIN_LOOK_S if looks < UNCERTAIN_LOOKS else _doubled(UNCERTAIN_LOOK_S, looks - UNCERTAIN_LOOKS)
    if state in (State.ACCEPTED, State.HANDED_OVER):
        return FIRST_LOOKS_S[looks] if looks < len(FIRST_LOOKS_S) else _doubled(30, looks - len(FIRST_LOOKS_S))
    return None


def _doubled(first_s: int, times: int) -> int:
    return int(min(LOOK_S_MAX, first_s * 2 ** min(times + 1, 10)))
