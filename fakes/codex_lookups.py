"""Finding a thread for a request, and the app-server's words where it is not to be had.

The same unknown thread is refused in three ways, depending on who asks: the queue's methods read the rollout,
those of the history look at what is loaded first, and those that load or move a thread look on disk.
"""

from typing import TYPE_CHECKING

from jsonrpcserver import JsonRpcError

from fakes.codex_params import INTERNAL_ERROR, refuse, uuid_fault
from fakes.codex_store import Input, Thread
from fakes.codex_thread import AlreadyOwned
from fakes.codex_turns import LoadedThread

if TYPE_CHECKING:
    from fakes.codex_connection import Connection

PAGE_DEFAULT = 25  # of every list


def thread_id(given: str, what: str = "thread") -> str:
    """The id in lower case, as it is stored."""
    fault = uuid_fault(given)
    if fault is not None:
        raise refuse(f"invalid {what} id: {fault}")
    return given.lower()


def find(to: "Connection", given: str) -> Thread | None:
    """The thread, if this server knows it: it is on disk, or was started here."""
    thread = to.server.home.find_thread(thread_id(given))
    known = thread is not None and (thread.on_disk or thread.id in to.server.loaded)
    return thread if known else None


def queue_thread(to: "Connection", given: str) -> Thread:
    """For thread/queue/*."""
    thread = find(to, given)
    if thread is None:
        missing = f"no rollout found for thread id {given.lower()}"
        raise refuse(f"failed to read thread: invalid thread-store request: {missing}", INTERNAL_ERROR)
    if thread.archived:
        raise archived(thread)
    return thread


def known_thread(to: "Connection", given: str) -> Thread:
    """For thread/read and thread/turns/list."""
    thread = find(to, given)
    if thread is None:
        raise refuse(f"thread not loaded: {given.lower()}")
    return thread


def stored_thread(to: "Connection", given: str, what: str = "thread") -> Thread:
    """For the methods that load, move or delete a thread."""
    thread = find(to, thread_id(given, what))
    if thread is None:
        raise refuse(f"no rollout found for thread id {given.lower()}")
    return thread


def loaded_thread(to: "Connection", given: str) -> LoadedThread:
    """For the methods that act on a thread that this server runs."""
    loaded = to.server.loaded.get(thread_id(given))
    if loaded is None:
        raise refuse(f"thread not found: {given.lower()}")
    return loaded


def load(to: "Connection", thread: Thread) -> LoadedThread:
    """Load the thread here; refused while another process runs it."""
    try:
        return to.server.load(thread.id)
    except AlreadyOwned:
        raise has_writer(thread) from None


def has_writer(thread: Thread) -> JsonRpcError:
    return refuse(f"thread {thread.id} already has an active writer")


def archived(thread: Thread) -> JsonRpcError:
    return refuse(f"session {thread.id} is archived. Run `codex unarchive {thread.id}` to unarchive it first.")


def page_size(limit: int | None) -> int:
    """A limit of 0 gives one entry."""
    return PAGE_DEFAULT if limit is None else max(limit, 1)


def with_elements(given: Input) -> Input:
    """As it is stored and answered: every text part has its `text_elements`."""
    return [{**part, "text_elements": part.get("text_elements", [])} if "text" in part else part for part in given]
