"""A list that a test can wait on: what a fake was asked, in order of arrival."""

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Recorder(Generic[T]):
    """Records items; `next` takes them one by one, `wait_for` looks at all, past and coming.

    Neither has a time limit of its own: wait under `anyio.fail_after`.
    """

    def __init__(self) -> None:
        self.items: list[T] = []
        self._taken = 0
        self._arrival = anyio.Event()

    def add(self, item: T) -> None:
        """Record `item` and wake everyone who waits."""
        self.items.append(item)
        self._arrival.set()
        self._arrival = anyio.Event()

    async def next(self) -> T:
        """The oldest item that `next` has not returned yet."""
        while self._taken == len(self.items):
            await self._arrival.wait()
        self._taken += 1
        return self.items[self._taken - 1]

    async def wait_for(self, matches: Callable[[T], bool]) -> T:
        """The oldest item that matches, whether `next` returned it or not."""
        looked_at = 0
        while True:
            for item in self.items[looked_at:]:
                if matches(item):
                    return item
            looked_at = len(self.items)
            await self._arrival.wait()
