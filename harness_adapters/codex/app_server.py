"""A Codex app-server that is ready to be asked: transport open, peer running, initialized.

It tries the transports of a plan in turn. Going on to the next is safe only here, where nothing but
`initialize` can have been written; after that a failure is the caller's to judge.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from channel.fault_places import Place, passing
from harness_adapters.codex import wire
from harness_adapters.codex.jsonrpc_peer import ErrorAnswer, Peer, PeerError, open_peer
from harness_adapters.codex.refusals import classify
from harness_adapters.codex.thread_queue import LateAdd, ThreadQueue, late_add
from harness_adapters.codex.transport import LineTransport, TransportUnavailable

INITIALIZE_S_MAX = 10.0
"""A fresh child answers in 0.1 s, and in 0.3 s when it has to make its databases."""


@dataclass(frozen=True)
class Opener:
    """One way to reach an app-server. `open` must raise TransportUnavailable where there is none."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[LineTransport]]


@dataclass(frozen=True)
class AppServer:
    """An initialized app-server; `transport` is the name of the opener that reached it."""

    transport: str
    codex_version: str | None
    queue: ThreadQueue
    peer: Peer

    @property
    def closed(self) -> bool:
        """True when it can't be asked any more: leave it and open another."""
        return self.peer.closed

    @property
    def in_words(self) -> str:
        """For a person: how it was reached, and what it is."""
        return f"{self.transport}, Codex {self.codex_version or 'of a version not told'}"


def reads_only(_late: LateAdd) -> None:
    """The `on_late_add` of who adds nothing."""


@asynccontextmanager
async def open_app_server(plan: Sequence[Opener], on_late_add: Callable[[LateAdd], None]) -> AsyncIterator[AppServer]:
    """The first app-server of the plan that can be reached and initialized, while the body runs.

    `on_late_add` is called, and must neither wait nor raise, when the answer to an add comes after its
    caller has gone. Leave the body only when no add is in flight: closing the transport usually makes the
    server drop what it has not read.

    Raises:
        TransportUnavailable: none could be reached; its text says why for each. Nothing was added.
    """
    reasons = []
    for opener in plan:
        async with AsyncExitStack() as stack:
            try:
                server = await _enter(stack, opener, on_late_add)
            except TransportUnavailable as error:
                reasons.append(f"{opener.name}: {error}")
                passing(Place.TRANSPORT_FAILED, opener.name)
                continue
            yield server
            return
    raise TransportUnavailable("; ".join(reasons) or "there is no way to reach a Codex app-server")


async def _enter(stack: AsyncExitStack, opener: Opener, on_late_add: Callable[[LateAdd], None]) -> AppServer:
    def on_late_answer(method: str, params: Mapping[str, Any], outcome: object) -> None:
        late = late_add(method, params, outcome)
        if late is not None:
            on_late_add(late)

    transport = await stack.enter_async_context(opener.open())
    passing(Place.TRANSPORT_OPENED, opener.name)
    peer = await stack.enter_async_context(open_peer(transport, on_late_answer))
    return AppServer(opener.name, await _initialize(peer), ThreadQueue(peer), peer)


async def _initialize(peer: Peer) -> str | None:
    """Codex's version, where it is told."""
    try:
        result = await peer.request(
            wire.INITIALIZE, wire.initialize_params(version("agent-channel")), within_s=INITIALIZE_S_MAX
        )
        codex_version = wire.codex_version(result)
        await peer.notify(wire.INITIALIZED)
    except ErrorAnswer as answer:
        raise TransportUnavailable(str(classify(answer))) from answer
    except (PeerError, wire.UnexpectedShape) as error:
        raise TransportUnavailable(str(error)) from error
    return codex_version
