"""A tiny MCP server on the SDK: `echo(text)` answers `{"echoed": text}`, `invite(command)` `{"command": command}`."""

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


class Invitation(BaseModel):
    command: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def invite(command: str) -> Invitation:
    """Answer the command, as a tool does whose result says what to run."""
    return Invitation(command=command)


if __name__ == "__main__":
    server.run()
