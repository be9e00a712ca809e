"""initialize, thread/start, resume, archive, unarchive, delete, unsubscribe; turn/start, turn/interrupt."""

# ruff: noqa: N803 - the arguments are the wire's own names

from typing import TYPE_CHECKING, Any

from fakes import codex_shapes as shapes
from fakes.codex_history_methods import full_turns, newest_cursors
from fakes.codex_lookups import archived, has_writer, load, loaded_thread, stored_thread, thread_id, with_elements
from fakes.codex_params import is_header_value, refuse
from fakes.codex_shapes import Json
from fakes.codex_store import Input, Thread
from fakes.codex_thread import AlreadyOwned, ThreadOwner

if TYPE_CHECKING:
    from fakes.codex_connection import Connection

EXCLUDE_TURNS = "use `excludeTurns: true`, then page with"


async def initialize(to: "Connection", /, clientInfo: Json, capabilities: Json | None = None, **_: Any) -> Json:
    name, number = clientInfo["name"], clientInfo["version"]
    if not is_header_value(name):
        raise refuse(f"Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value.")
    to.initialized = True
    to.experimental = bool((capabilities or {}).get("experimentalApi"))
    to.silenced |= set((capabilities or {}).get("optOutNotificationMethods") or ())
    to.server.originator = to.server.originator or name
    client = f"{name}; {number}" if number else f"{name};"
    return {
        "userAgent": f"{to.server.originator}/{to.server.version.number} (Debian 12.0.0; x86_64) unknown ({client})",
        "codexHome": str(to.server.home.path),
        "platformFamily": "unix",
        "platformOs": "linux",
    }


async def thread_start(to: "Connection", /, cwd: str | None = None, historyMode: str | None = None, **_: Any) -> Json:
    mode = historyMode or to.server.version.history_mode
    thread = to.server.home.create_thread(history_mode=mode, cwd=cwd)
    loaded = to.server.load(thread.id)
    loaded.subscribers.append(to)
    shape = to.server.thread_shape(thread)
    to.after_answer("thread/started", {"thread": shape})
    return shapes.started_thread(to.server.home, shape, thread.cwd, to.server.version)


async def thread_resume(to: "Connection", /, threadId: str, excludeTurns: bool | None = None, **_: Any) -> Json:
    thread = stored_thread(to, threadId, what="session")
    if thread.archived:
        raise archived(thread)
    loaded = to.server.loaded.get(thread.id) or load(to, thread)
    if to not in loaded.subscribers:
        loaded.subscribers.append(to)
    shape = to.server.thread_shape(thread)
    if not excludeTurns:
        shape["turns"] = await full_turns(to, thread, EXCLUDE_TURNS)
    await loaded.tell_status()
    cursors = newest_cursors(to, thread)
    return shapes.resumed_thread(to.server.home, shape, thread.cwd, to.server.version, cursors)


async def thread_archive(to: "Connection", /, threadId: str, **_: Any) -> Json:
    thread = stored_thread(to, threadId)
    if thread.archived:
        raise refuse(f"no rollout found for thread id {thread.id}")
    _refuse_if_owned_elsewhere(to, thread)
    to.server.unload(thread.id)
    to.server.home.set_archived(thread.id, True)
    await to.notify("thread/archived", {"threadId": thread.id})
    return {}


async def thread_unarchive(to: "Connection", /, threadId: str, **_: Any) -> Json:
    thread = stored_thread(to, threadId)
    _refuse_if_owned_elsewhere(to, thread)
    if not thread.archived:
        raise refuse(f"no archived rollout found for thread id {thread.id}")
    to.server.home.set_archived(thread.id, False)
    await to.notify("thread/unarchived", {"threadId": thread.id})
    return {"thread": to.server.thread_shape(to.server.home.thread(thread.id))}


async def thread_delete(to: "Connection", /, threadId: str, **_: Any) -> Json:
    thread = stored_thread(to, threadId)
    to.server.unload(thread.id)
    to.server.home.delete_thread(thread.id)
    await to.notify("thread/deleted", {"threadId": thread.id})
    return {}


async def thread_unsubscribe(to: "Connection", /, threadId: str, **_: Any) -> Json:
    loaded = to.server.loaded.get(thread_id(threadId))
    if loaded is None:
        return {"status": "notLoaded"}
    if to not in loaded.subscribers:
        return {"status": "notSubscribed"}
    loaded.subscribers.remove(to)
    return {"status": "unsubscribed"}


async def turn_start(
    to: "Connection", /, threadId: str, input: Input, clientUserMessageId: str | None = None, **_: Any
) -> Json:
    loaded = loaded_thread(to, threadId)
    turn = loaded.start_turn(with_elements(input), clientUserMessageId)
    return {"turn": shapes.new_turn(turn, started=False)}


async def turn_interrupt(to: "Connection", /, threadId: str, turnId: str, **_: Any) -> Json:
    loaded = loaded_thread(to, threadId)
    running = loaded.owner.running
    if running is None:
        raise refuse("no active turn to interrupt")
    if running.id != turnId:
        raise refuse(f"expected active turn id {turnId} but found {running.id}")
    loaded.interrupt()
    return {}


def _refuse_if_owned_elsewhere(to: "Connection", thread: Thread) -> None:
    if thread.id not in to.server.loaded:
        try:
            ThreadOwner(to.server.home, thread.id).close()
        except AlreadyOwned:
            raise has_writer(thread) from None
