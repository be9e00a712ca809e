"""The floor of the MCP server: one of the SDK's own, with four tools that do nothing."""

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = [types.Tool(name=f"nothing_{number}", input_schema={"type": "object"}) for number in range(4)]


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(_context: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content={})


async def serve() -> None:
    server: Server[Any] = Server("floor", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve)
