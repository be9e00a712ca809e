"""A transport whose other end is played by the test: it reads what was sent and writes what comes back."""

import json
from typing import Any

import anyio

from harness_adapters.codex.transport import NothingSent, TransportClosed


class PlayedServer:
    """The peer holds it as its transport; the test calls the methods below `LineTransport`'s three."""

    def __init__(self) -> None:
        self._to_server, self._from_client = anyio.create_memory_object_stream[str](1000)
        self._to_client, self._from_server = anyio.create_memory_object_stream[str](5000)
        self._reads = anyio.Event()
        self._reads.set()
        self._write_error: Exception | None = None
        self.write_begun = anyio.Event()

    async def send(self, line: str) -> None:
        if isinstance(self._write_error, NothingSent):
            raise self._write_error
        self.write_begun.set()
        await self._reads.wait()
        if self._write_error is not None:
            raise self._write_error
        await self._to_server.send(line)

    async def receive(self) -> str:
        try:
            return await self._from_server.receive()
        except anyio.EndOfStream as error:
            raise TransportClosed("the played server is gone") from error

    async def aclose(self) -> None:
        self._to_client.close()

    async def asked(self) -> dict[str, Any]:
        """The next message that the peer wrote."""
        message = json.loads(await self._from_client.receive())
        assert isinstance(message, dict)
        return message

    def wrote_nothing(self) -> bool:
        return self._from_client.statistics().current_buffer_used == 0

    def say(self, line: str) -> None:
        self._to_client.send_nowait(line)

    def answer(self, request: dict[str, Any], result: object) -> None:
        self.say(json.dumps({"id": request["id"], "result": result}))

    def refuse(self, request: dict[str, Any], code: int, message: str, data: object = None) -> None:
        self.say(json.dumps({"id": request["id"], "error": {"code": code, "message": message, "data": data}}))

    def hang_up(self) -> None:
        self._to_client.close()

    def read_no_more(self) -> None:
        """From now on a write begins and does not end."""
        self._reads = anyio.Event()
        self.write_begun = anyio.Event()

    def read_again(self) -> None:
        self._reads.set()

    def break_writes(self, error: Exception) -> None:
        """From now on a write ends with `error`."""
        self._write_error = error

    def clear_away(self) -> None:
        """Close what is still open, at the end of a test."""
        for stream in (self._to_server, self._from_client, self._to_client, self._from_server):
            stream.close()
