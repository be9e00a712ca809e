"""Tasks that live as long as a `with` body and hide from it that they are a task group."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled when the body ends.

    An error of the body comes out as itself and not inside an exception group, so that callers can catch it
    by its class. An error of a task (a fault of ours) ends the body and comes out as a group.
    """
    of_body: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:
            of_body = error
        finally:
            tasks.cancel_scope.cancel()
    if of_body is not None:
        raise of_body
