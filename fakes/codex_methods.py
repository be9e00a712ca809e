"""The methods that the fake app-server plays.

A handler gets the connection and the request's params; it returns the result, or raises the JsonRpcError that
the client is answered. That the params can be parsed was checked before (`fakes/codex_params.py`).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fakes import codex_history_methods as history
from fakes import codex_queue_methods as queue
from fakes import codex_thread_methods as threads

Handler = Callable[..., Awaitable[Any]]

METHODS: dict[str, Handler] = {
    "initialize": threads.initialize,
    "thread/queue/add": queue.queue_add,
    "thread/queue/list": queue.queue_list,
    "thread/queue/update": queue.queue_update,
    "thread/queue/delete": queue.queue_delete,
    "thread/queue/start": queue.queue_start,
    "thread/items/list": history.items_list,
    "thread/turns/list": history.turns_list,
    "thread/read": history.thread_read,
    "thread/start": threads.thread_start,
    "thread/resume": threads.thread_resume,
    "thread/archive": threads.thread_archive,
    "thread/unarchive": threads.thread_unarchive,
    "thread/delete": threads.thread_delete,
    "thread/unsubscribe": threads.thread_unsubscribe,
    "turn/start": threads.turn_start,
    "turn/interrupt": threads.turn_interrupt,
}
EXPERIMENTAL = frozenset(name for name in METHODS if name.startswith("thread/queue/"))
