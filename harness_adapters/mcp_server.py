"""`agent-channel-mcp`: the MCP server on stdio. Protocol and process life; the tools are in `tool_calls.py`.

State belongs to the process, since the newer protocol era has no session. The channel is opened beside the
protocol, so that the handshake is answered even while the database is locked. The end comes within 100 ms
of a signal, of the end of stdin or of the harness: Claude Code 2.1.332 gives no longer.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from channel.clock import Clock, SystemClock
from channel.errors import ChannelError
from channel.fault_places import Place, passing
from channel.place import default_database
from harness_adapters.backend import Backend
from harness_adapters.callers import caller_of
from harness_adapters.claude.pipe import OutputPipe
from harness_adapters.codex.threads import NotServable
from harness_adapters.tool_calls import Answer
from harness_adapters.tool_texts import INSTRUCTIONS, TOOLS
from harness_adapters.unreadable_lines import AnsweringReadStream
from waiters import processes

END_S_MAX = 0.095
"""After this long the process ends whatever is still open; the truth about it is its identity, not a row."""

logger = logging.getLogger("agent-channel")


def build_server(backend: Backend) -> Server[Any]:
    """The protocol's side of the four tools."""
    tools = [_tool(tool) for tool in TOOLS]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call(backend, context, params.name, params.arguments or {})

    return Server(
        "agent-channel",
        version=version("agent-channel"),
        title="agent-channel",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(backend: Backend, context: Any, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    if name not in {tool["name"] for tool in TOOLS}:
        return _refused(f"agent-channel has no tool {name[:60]!r}.")
    try:
        client = context.session.client_params.client_info
        caller = caller_of(client.name, client.version, context.meta or {}, processes.own_identity())
        calls = await backend.calls()
        tool: Callable[..., Awaitable[Answer]] = getattr(calls, name)
        answer = await tool(caller, arguments)
        passing(Place.CALL_UNANSWERED, name)
    except (ChannelError, NotServable) as error:
        return _refused(str(error))
    except Exception as error:
        logger.exception("%s failed", name)
        return _refused(
            f"agent-channel failed in {name} ({type(error).__name__}), which is a fault of its own; "
            "its standard error says more. Whether something was stored is not known: look before you repeat it."
        )
    return types.CallToolResult(content=[], structured_content=answer)


def _refused(why: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=why)], is_error=True)


def _tool(tool: Mapping[str, Any]) -> types.Tool:
    # Codex asks its user before a tool that may destroy or that reaches out, and refuses it under approval
    # policy "never"; Claude Code would hide the tools from the first request without alwaysLoad.
    return types.Tool(
        name=tool["name"],
        title=tool["title"],
        description=tool["description"],
        input_schema=tool["schema"],
        annotations=types.ToolAnnotations(
            title=tool["title"],
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=tool["idempotent"],
            open_world_hint=False,
        ),
        _meta={"anthropic/alwaysLoad": True},
    )


async def serve(database: Path, clock: Clock | None = None) -> None:
    """Serve stdin and stdout until stdin ends, nobody reads stdout any more, a signal comes or the process that started
    this one has ended.

    `clock`: the system's, if None.
    """
    answers = OutputPipe(os.dup(sys.stdout.fileno()), SystemClock())  # the SDK puts something else in its place
    backend = Backend(database, clock)
    server = build_server(backend)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(backend.run)
        tasks.start_soon(_end_at_signal, backend)
        tasks.start_soon(_end_with_parent, backend)
        tasks.start_soon(_end_with_reader, backend, answers)
        try:
            async with stdio_server() as (read, write):
                await server.run(AnsweringReadStream(read, write), write, server.create_initialization_options())
        except Exception:
            # A harness that is gone reads no stderr; from one that lives, a fault of ours must not be hidden.
            logger.exception("the server ends by a failure")
        finally:
            await _end(backend)


async def _end_at_signal(backend: Backend) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            await _end(backend)


async def _end_with_parent(backend: Backend) -> None:
    """Where another process holds the other ends of the pipes, the harness's death is no end of stdin."""
    parent = processes.identity_of(os.getppid())
    if parent is not None:
        await processes.wait_ended(parent, SystemClock())
        await _end(backend)


async def _end_with_reader(backend: Backend, answers: OutputPipe) -> None:
    """An answer that can't be written ends the SDK's server only with the next line of stdin, which may never come."""
    await answers.wait_dead()
    await _end(backend)


async def _end(backend: Backend) -> None:
    _arm_watchdog()
    await backend.stop()
    # The SDK reads stdin in a thread that nothing can interrupt, so the interpreter would wait for it.
    logging.shutdown()
    os._exit(0)


def _arm_watchdog() -> None:
    def end(_signal: int, _frame: FrameType | None) -> None:
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, END_S_MAX)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve MCP on stdio."""
    if sys.platform == "win32":
        sys.exit("agent-channel does not run on Windows yet: it needs FIFOs and unix sockets.")
    parser = argparse.ArgumentParser(prog="agent-channel-mcp", description="The MCP server of agent-channel, on stdio.")
    parser.add_argument("--db", type=Path, default=default_database(), help="the channel's file (default: %(default)s)")
    options = parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="agent-channel: %(levelname)s: %(message)s")
    anyio.run(serve, options.db.expanduser().absolute())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
