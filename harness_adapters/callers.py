"""Which harness session a tool call comes from."""

import os
from collections.abc import Mapping
from typing import Any

from channel.membership import Caller
from harness_adapters.claude import session as claude_session
from harness_adapters.claude.addresses import claude_address, keyed_address
from harness_adapters.codex import threads
from waiters.processes import ProcessIdentity

CODEX_CLIENT = "codex-mcp-client"
CLAUDE_CLIENT = "claude-code"
CLAUDE_HARNESS = "claude"
OTHER_HARNESS = "other"


def caller_of(client_name: str, client_version: str, meta: Mapping[str, Any], server: ProcessIdentity) -> Caller:
    """The session behind a call, from the client's name, the call's `_meta` and the processes above.

    Raises harness_adapters.codex.threads.NotServable.
    """
    if client_name == CODEX_CLIENT:
        return threads.caller_of(meta, client_version, server)
    if client_name == CLAUDE_CLIENT:
        session = claude_session.session_of_server(server.pid, claude_session.config_folder(os.environ))
        # Without a note the nearest program above is a guess; Claude Code's own mark (from 2.1.154) makes it good.
        if session is not None and (session.session_id or "CLAUDECODE" in os.environ):
            process = session.process.to_text()
            return Caller(
                claude_address(session.process),
                CLAUDE_HARNESS,
                process,
                server.to_text(),
                session_id=session.session_id,
            )
    harness = CLAUDE_HARNESS if client_name == CLAUDE_CLIENT else OTHER_HARNESS
    return Caller(keyed_address(server.to_text()), harness, server.to_text(), server.to_text())
