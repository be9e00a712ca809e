"""A process that has loaded all that a server needs, and forks one for each order: 30 ms instead of a second.

What it forks is a process like any other: with its own identity, killed by signals, its standard streams its own.
It ends with whoever gave the orders, and its servers with it, as their harness is gone.
"""

import array
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module

import anyio

from waiters.processes import ProcessIdentity, identity_of

ORDER_BYTES_MAX = 65_536

LOADED = ("harness_adapters.mcp_server", "tests.crash.faulted", "websockets.asyncio.client")


class Zygote:
    """Starts servers. Made by `zygote`."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._turn = anyio.Lock()

    async def start(self, arguments: Sequence[str], environment: Mapping[str, str], stream: int) -> ProcessIdentity:
        """A process with `stream` for stdin and stdout, and the given arguments for `faulted.main`."""
        order = json.dumps([list(arguments), dict(environment)]).encode()
        async with self._turn:
            with anyio.CancelScope(shield=True):
                descriptors = array.array("i", [stream]).tobytes()
                self._orders.sendmsg([order], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
                await anyio.wait_readable(self._orders)
                identity = self._orders.recv(ORDER_BYTES_MAX).decode()
        return ProcessIdentity.from_text(identity)


@asynccontextmanager
async def zygote() -> AsyncIterator[Zygote]:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        command = [sys.executable, "-I", "-m", "tests.crash.zygote", str(its.fileno())]
        # In a session of its own: Ctrl-C is for the campaign alone, which ends its processes itself.
        process = await anyio.open_process(
            command, stdin=None, stdout=None, stderr=None, pass_fds=[its.fileno()], cwd="/", start_new_session=True
        )
        its.close()
        try:
            yield Zygote(ours)
        finally:
            ours.close()
            with anyio.CancelScope(shield=True):
                await process.wait()


def serve(orders: socket.socket) -> None:
    """Fork for each order until nobody gives any."""
    while True:
        order, control, _, _ = orders.recvmsg(ORDER_BYTES_MAX, socket.CMSG_SPACE(4))
        if not order:
            return
        [(_, _, descriptors)] = control
        [stream] = array.array("i", descriptors)
        pid = os.fork()
        if not pid:
            orders.close()
            _become(stream, *json.loads(order))
        os.close(stream)
        identity = identity_of(pid)
        assert identity is not None
        orders.send(identity.to_text().encode())


def _become(stream: int, arguments: list[str], environment: dict[str, str]) -> None:
    from tests.crash import faulted

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(stream, 0)
    os.dup2(stream, 1)
    os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    status = 1
    try:
        status = faulted.main(arguments)
    finally:
        os._exit(status)


if __name__ == "__main__":
    for module in LOADED:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what it forks
    serve(socket.socket(fileno=int(sys.argv[1])))
