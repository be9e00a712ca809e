"""How it stands with a role, in a few words: in the answers to models, and in what people's commands print."""

from channel.presence import PERSON, RoleView
from harness_adapters.codex import addresses as codex
from waiters import status

ACTIVE = "active"
OFFLINE = "offline"
NOT_LOADED = "not loaded"
READS_BY_THEMSELVES = "a person"


def state_of(view: RoleView) -> str:
    """One of the words above.

    A loaded Codex thread is active: it is served by whoever sends to it, if its own server is not there to do it.
    """
    if view.harness == PERSON:
        return READS_BY_THEMSELVES
    if view.harness != codex.HARNESS:
        return ACTIVE if view.waiter_active else OFFLINE
    return ACTIVE if view.connected or codex.is_loaded(view.address) else NOT_LOADED


def in_words(view: RoleView, new: int = 0) -> str:
    """The state with what else there is to say. `new`: messages that were not counted yet."""
    state, waiting = state_of(view), view.waiting + new
    since = f"offline since {status.at(view.offline_since_ms or 0)}" + (f", {waiting} waiting" if waiting else "")
    if state == READS_BY_THEMSELVES:
        return "a person, who reads when they look" + (f"; {waiting} not read yet" if waiting else "")
    if state == NOT_LOADED:
        words = "not loaded: runs on resume" + ("" if view.waiter_active else f"; {since}")
    else:
        words = since if state == OFFLINE else ACTIVE
    return f"{words}; {view.detail}" if view.waiter_active and view.detail else words
