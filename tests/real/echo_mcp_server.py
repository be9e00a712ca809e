"""A tiny MCP server on the SDK: one tool, `echo(text)`, that answers `{"echoed": text}`."""

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("echo", version="1")


class Echo(BaseModel):
    echoed: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def echo(text: str) -> Echo:
    """Answer the text."""
    return Echo(echoed=text)


if __name__ == "__main__":
    server.run()
