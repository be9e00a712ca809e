"""One server process, started as a harness starts it, and asked as far as no harm can come of it.

It speaks the protocol by hand: the SDK takes over a second to import.
"""

import json
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

LINE_BYTES_MAX = 1_000_000
"""Our four tools take 4 KB."""

END_S_MAX = 2.0
"""Ours ends 0.1 s after the end of its stdin; what was started instead is ended by force."""

LAST_WORDS_BYTES = 4_000
LAST_WORDS_CHARACTERS = 300
"""Read of the end of its stderr, and shown of the last line."""

_PROTOCOL = "2025-06-18"


class ServerFailed(Exception):
    """It did not start, or not answer as a server of the protocol; the text says what was seen."""


class StartedServer:
    """Made by `start_server`."""

    def __init__(self, process: Process, stderr: IO[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)
        self._stderr = stderr
        self._ids = count(1)

    async def tools(self) -> set[str]:
        """The handshake, up to the names of the tools that it offers. Raises ServerFailed."""
        client = {"name": "agent-channel-doctor", "version": version("agent-channel")}
        await self._request("initialize", protocolVersion=_PROTOCOL, capabilities={}, clientInfo=client)
        await self._send({"method": "notifications/initialized"})
        tools = (await self._request("tools/list")).get("tools", [])
        return {str(tool.get("name")) for tool in tools if isinstance(tool, dict)}

    async def refusal_of_leave(self) -> str:
        """What it answers to `leave` from a session that has joined nothing: it has opened its file then.

        Nothing is stored: such a session is known to nobody. Raises ServerFailed.
        """
        result = await self._request("tools/call", name="leave", arguments={})
        return " ".join(str(part.get("text", "")) for part in result.get("content", ()) if isinstance(part, dict))

    def opened_databases(self) -> dict[Path, str]:
        """Each SQLite file with a log that it, or a process below it, has open, and that process's program."""
        import psutil

        found = {}
        with suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            for each in (process, *process.children(recursive=True)):
                with suppress(psutil.Error):
                    paths = {file.path for file in each.open_files()}
                    program = next(iter(each.cmdline()), "")
                    found.update({Path(path): program for path in paths if f"{path}-wal" in paths})
        return found

    async def _request(self, method: str, **params: Any) -> Mapping[str, Any]:
        number = next(self._ids)
        await self._send({"id": number, "method": method, "params": params})
        while True:
            answer = await self._receive()
            if answer.get("id") != number:
                continue
            result = answer.get("result")
            if not isinstance(result, dict):
                raise ServerFailed(f"it answered {method} with {json.dumps(answer)[:LAST_WORDS_CHARACTERS]}")
            return result

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            await self._stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ServerFailed(await self._why_it_ended()) from error

    async def _receive(self) -> Mapping[str, Any]:
        try:
            line = await self._lines.receive_until(b"\n", LINE_BYTES_MAX)
            message = json.loads(line)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ServerFailed(await self._why_it_ended()) from error
        except (anyio.DelimiterNotFound, ValueError, RecursionError) as error:
            raise ServerFailed("it writes what is no protocol to its stdout") from error
        if not isinstance(message, dict):
            raise ServerFailed("it writes what is no protocol to its stdout")
        return message

    async def _why_it_ended(self) -> str:
        with anyio.move_on_after(END_S_MAX):
            await self._process.wait()
        status = self._process.returncode
        how = "it stopped answering" if status is None else f"it ended with status {status}"
        return f"{how}{self._last_words()}"

    def _last_words(self) -> str:
        """The last line of its stderr, behind a colon; "" if it wrote none."""
        end = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, end - LAST_WORDS_BYTES))
        lines = [line.strip() for line in self._stderr.read().decode(errors="replace").splitlines() if line.strip()]
        return f": {lines[-1][:LAST_WORDS_CHARACTERS]}" if lines else ""


@asynccontextmanager
async def start_server(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> AsyncIterator[StartedServer]:
    """Start it; its stdin ends with the body. Raises ServerFailed if it can't be started."""
    with TemporaryFile() as stderr:
        try:
            process = await anyio.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                cwd=folder,
            )
        except (OSError, ValueError) as error:
            raise ServerFailed(getattr(error, "strerror", None) or str(error)) from error
        try:
            yield StartedServer(process, stderr)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _end(process: Process) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    with anyio.move_on_after(END_S_MAX):
        await process.wait()
    with suppress(ProcessLookupError):
        process.kill()
    await process.aclose()
