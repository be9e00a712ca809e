"""The waiter of a receiver that is tested by itself."""

from channel.errors import LeaseLost
from channel.messages import Outcome


class RecordingWaiter:
    """Keeps what it is given to record. `lost`: another process is the waiter from now on."""

    def __init__(self) -> None:
        self.recorded: list[Outcome] = []
        self.is_stopping = False
        self.lost = False

    async def say(self, trouble: str) -> None: ...

    async def record(self, *outcomes: Outcome) -> None:
        self.recorded += outcomes

    async def check_lease(self) -> None:
        if self.lost:
            raise LeaseLost("an address")

    def wake(self) -> None: ...
