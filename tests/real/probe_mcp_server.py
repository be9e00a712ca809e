"""A tiny MCP server (stdio, 2025-06-18) that writes down how its harness runs it.

`python probe_mcp_server.py LOG` appends JSON lines to LOG, each with its `pid` and an `event`: `started`
(with its own environment and its parent), `initialize` and `call` (with the params as received), `signal`
(with its number), `eof`. It has one tool, `note(text)`, annotated so that Codex calls it without asking,
which answers `{"noted": text}`.
"""

import json
import os
import signal
import sys
from typing import Any

import psutil

NOTE = {
    "name": "note",
    "description": "Write a text down.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
}
LOGGED = {"initialize": "initialize", "tools/call": "call"}


def describe(process: psutil.Process) -> dict[str, Any]:
    """What a server can learn of the process above it."""
    return process.as_dict(["pid", "cmdline", "exe", "environ"])


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "probe", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [NOTE]}
    if method == "tools/call":
        noted = {"noted": params["arguments"]["text"]}
        return {"content": [{"type": "text", "text": json.dumps(noted)}], "structuredContent": noted}
    return {}


def main() -> None:
    log_path = sys.argv[1]

    def log(event: str, **members: Any) -> None:
        with open(log_path, "a") as log_file:  # noqa: PTH123
            log_file.write(json.dumps({"pid": os.getpid(), "event": event, **members}) + "\n")

    def end(number: int, _frame: object) -> None:
        log("signal", number=number)
        sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    log("started", parent=describe(psutil.Process(os.getppid())), environ=dict(os.environ))
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message["method"], message.get("params", {})
        if method in LOGGED:
            log(LOGGED[method], params=params)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(method, params)}
            print(json.dumps(reply), flush=True)
    log("eof")


if __name__ == "__main__":
    main()
