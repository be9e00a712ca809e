"""Codex itself: does it read its configuration, does its app-server know the queue, does its daemon listen.

Each is asked, never read off a version: an app-server without the queue names the method as unknown.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from harness_adapters.codex.app_server import Opener, open_app_server, reads_only
from harness_adapters.codex.child import SQLITE_HOME, open_child
from harness_adapters.codex.daemon import open_daemon
from harness_adapters.codex.jsonrpc_peer import PeerError
from harness_adapters.codex.refusals import Refusal, UnknownThread
from harness_adapters.codex.threads import CONTROL_SOCKET
from harness_adapters.codex.transport import TransportUnavailable
from harness_adapters.doctor.finding import Finding, Level, failed, passed, warned
from harness_adapters.doctor.output_of import output_of
from harness_adapters.doctor.surroundings import Surroundings

NO_THREAD = "00000000-0000-0000-0000-000000000000"
"""An id that no thread has: what has the queue answers that it does not know it, and nothing is changed."""


async def codex_itself(around: Surroundings) -> AsyncIterator[Finding]:
    codex = around.codex
    if codex is None:
        return
    if not around.codex_home.is_dir():
        yield warned(
            f"Codex: {around.codex_home} is not there, so nothing could be asked",
            "Start `codex` once, or correct CODEX_HOME.",
        )
        return
    yield await configuration(around, codex)
    yield await queue(_child(around, codex))
    socket = around.codex_home / CONTROL_SOCKET
    if socket.is_symlink() or socket.exists():
        yield await daemon(socket)


async def configuration(around: Surroundings, codex: Path) -> Finding:
    """As Codex itself reads it; it starts no server for this."""
    file = around.codex_home / "config.toml"
    ran = await output_of([codex, "mcp", "list", "--json"], around)
    if ran.status == 0:
        return passed(f"Codex reads {file}")
    reason = next((line for line in ran.errors.splitlines() if str(file) in line), ran.last_words)
    return failed(
        f"Codex can't read its configuration: {reason.strip()}",
        f"Mend {file}: until then Codex does not start our server.",
    )


async def queue(opener: Opener) -> Finding:
    """Whether an app-server that is reached so takes messages for threads."""
    try:
        async with open_app_server([opener], reads_only) as server:
            answered = f"Codex's app-server ({opener.name}, version {server.codex_version or 'not told'})"
            with suppress(UnknownThread):
                await server.queue.probe(NO_THREAD)
            return passed(f"{answered} answered thread/queue/list")
    except Refusal as refusal:
        return failed(f"{answered} did not take thread/queue/list. {refusal}", "Update Codex.")
    except (TransportUnavailable, PeerError) as error:
        return failed(f"no app-server of Codex answers: {error}", "See what Codex itself says when you start it.")


async def daemon(socket: Path) -> Finding:
    """The shared app-server of the terminal program: an idle thread starts at once where it listens."""
    finding = await queue(Opener("daemon", lambda: open_daemon(socket)))
    if finding.level is Level.PASS:
        return finding
    return warned(
        f"Codex's daemon left its socket behind, or does not answer on it: {finding.proved}",
        "Nothing has to be done: messages go through an app-server of our own, and take up to 10 s longer. "
        f"The next `codex` starts another daemon; if not, remove {socket}.",
    )


def _child(around: Surroundings, codex: Path) -> Opener:
    named = around.variables.get(SQLITE_HOME)
    sqlite_home = Path(named) if named else None
    return Opener("child", lambda: open_child(codex, around.codex_home, around.variables, sqlite_home))
