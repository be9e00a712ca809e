"""The channel put together from its parts, for the two entrances: clock, ids and processes are chosen here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from channel.clock import Clock, IdSource, SystemClock, SystemIds
from channel.database import Database, OnUpgrade, open_database
from channel.deliveries import Deliveries
from channel.leases import Leases
from channel.membership import Membership
from channel.presence import Presence
from channel.sending import Sending
from waiters import processes
from waiters.processes import ProcessIdentity
from waiters.supervisor import Supervisor, open_supervisor


class Channel(NamedTuple):
    """One open channel, and the waiters of this process."""

    database: Database
    clock: Clock
    ids: IdSource
    membership: Membership
    sending: Sending
    leases: Leases
    deliveries: Deliveries
    process: ProcessIdentity
    supervisor: Supervisor


@asynccontextmanager
async def open_channel(
    path: Path,
    *,
    durable: bool,
    create: bool = True,
    clock: Clock | None = None,
    on_upgrade: OnUpgrade = lambda _step: None,
) -> AsyncIterator[Channel]:
    """The channel at `path`, made if it is not there and `create` is True.

    `durable`: a commit survives power loss. `clock`: the system's, if None. `on_upgrade`: as of
    `open_database`. Raises StoreUnavailable.
    """
    clock, ids, process = clock or SystemClock(), SystemIds(), processes.own_identity()
    async with open_database(path, durable=durable, create=create, on_upgrade=on_upgrade) as database:
        presence = Presence(clock, processes.boot_id(), _is_alive)
        leases = Leases(database, clock, presence)
        deliveries = Deliveries(database, clock, leases)
        async with open_supervisor(database, deliveries, leases, clock, ids, process.to_text()) as supervisor:
            yield Channel(
                database=database,
                clock=clock,
                ids=ids,
                membership=Membership(database, clock, ids, presence),
                sending=Sending(database, clock, presence),
                leases=leases,
                deliveries=deliveries,
                process=process,
                supervisor=supervisor,
            )


def _is_alive(process: str) -> bool | None:
    try:
        identity = ProcessIdentity.from_text(process)
    except ValueError:
        return None  # written by a version that names processes otherwise: its lease decides
    return processes.is_alive(identity)
