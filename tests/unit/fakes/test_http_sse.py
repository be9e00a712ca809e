"""The loopback server under the fake model endpoints, over real sockets."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketStream

from fakes.http_sse import Answer, Request, serve_http

WAIT_S = 5


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[SocketStream]:
    """A client connection that writes its bytes itself, so that each framing can be tried."""
    async with await anyio.connect_tcp("127.0.0.1", urlsplit(url).port or 0) as stream:
        yield stream


async def read_until(stream: SocketStream, mark: bytes) -> bytes:
    received = b""
    with anyio.fail_after(WAIT_S):
        while mark not in received:
            received += await stream.receive()
    return received


async def read_all(stream: SocketStream) -> bytes:
    received = b""
    with anyio.fail_after(WAIT_S):
        while True:
            try:
                received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return received


async def echo(request: Request, answer: Answer) -> None:
    await answer.send_json(
        {"method": request.method, "path": request.path, "query": dict(request.query)}
        | {"header": request.headers.get("x-mark"), "body": request.body.decode()}
    )


async def test_a_request_in_chunks_over_several_packets_reaches_the_handler_whole():
    async with serve_http(echo) as url, connect(url) as client:
        head = b"POST /v1/things?a=1&b= HTTP/1.1\r\nHost: x\r\nX-Mark: m\r\nTransfer-Encoding: chunked\r\n\r\n"
        await client.send(head + b"3\r\nab")
        await client.send(b"c\r\n2\r\nde\r\n0\r\n\r\n")
        answer = await read_until(client, b'"body": "abcde"}')
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
        "method": "POST",
        "path": "/v1/things",
        "query": {"a": "1", "b": ""},
        "header": "m",
        "body": "abcde",
    }


async def test_a_kept_alive_connection_serves_pipelined_requests_in_order():
    async with serve_http(echo) as url, connect(url) as client:
        request = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
        await client.send(request % 1 + request % 2 + b"GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = await read_all(client)
    assert [received.find(b'"path": "/%d"' % n) > 0 for n in (1, 2, 3)] == [True] * 3
    assert received.find(b"/1") < received.find(b"/2") < received.find(b"/3")


async def test_a_head_request_gets_the_head_alone():
    async with serve_http(echo) as url, connect(url) as client:
        await client.send(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = await read_all(client)
    assert received.startswith(b"HTTP/1.1 200")
    assert received.endswith(b"\r\n\r\n")


async def test_events_arrive_while_the_handler_still_runs():
    goal = anyio.Event()

    async def stream(request: Request, answer: Answer) -> None:
        await answer.send_event("first", {"n": 1})
        await goal.wait()
        await answer.send_event("second", {"n": 2})

    async with serve_http(stream) as url, connect(url) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        early = await read_until(client, b'event: first\ndata: {"n": 1}\n\n')
        goal.set()
        late = await read_all(client)
    assert b"text/event-stream" in early
    assert b"second" not in early
    assert b'event: second\ndata: {"n": 2}\n\n' in late


async def test_a_client_that_leaves_cancels_its_waiting_handler_and_nothing_else():
    started, cancelled = anyio.Event(), anyio.Event()

    async def hang(request: Request, answer: Answer) -> None:
        if request.path == "/quick":
            await answer.send_json({})
            return
        await answer.send_event("first", {})
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with serve_http(hang) as url:
        async with connect(url) as client:
            await client.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            with anyio.fail_after(WAIT_S):
                await started.wait()
        with anyio.fail_after(WAIT_S):
            await cancelled.wait()
        async with connect(url) as client:
            await client.send(b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await read_until(client, b"{}")).startswith(b"HTTP/1.1 200")


async def test_a_handler_that_sends_nothing_closes_the_connection():
    async def say_nothing(request: Request, answer: Answer) -> None:
        pass

    async with serve_http(say_nothing) as url, connect(url) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await read_all(client) == b""


async def test_a_client_that_does_not_speak_http_is_dropped_and_the_server_lives():
    async with serve_http(echo) as url:
        async with connect(url) as client:
            await client.send(b"\x00\x01 nonsense\r\n\r\n")
            assert await read_all(client) == b""
        async with connect(url) as client:
            await client.send(b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n")
            await read_until(client, b"/after")


async def test_a_failing_handler_fails_the_test_that_uses_it():
    async def fail(request: Request, answer: Answer) -> None:
        raise ValueError("a bug in the script")

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        with anyio.fail_after(WAIT_S):
            async with serve_http(fail) as url, connect(url) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await anyio.sleep_forever()


async def test_nobody_but_this_machine_can_connect():
    async with serve_http(echo) as url:
        port = urlsplit(url).port
        listening = socket.socket()
        with listening:
            listening.bind(("127.0.0.2", port or 0))  # free: the server took 127.0.0.1 alone
