"""The addresses of sessions that a streamer serves, and what the streamer has to be told of them."""

from waiters.processes import ProcessIdentity

_CLAUDE = "claude:"
_KEYED = "session:"


def claude_address(process: ProcessIdentity) -> str:
    """The session in a Claude Code process: the streamer finds the same by itself."""
    return f"{_CLAUDE}{process.to_text()}"


def process_of(address: str) -> ProcessIdentity | None:
    """The Claude Code process of a session's address; None for another kind of address."""
    if not address.startswith(_CLAUDE):
        return None
    return ProcessIdentity.from_text(address.removeprefix(_CLAUDE))


def keyed_address(session_key: str) -> str:
    """A session that its streamer is told with `--session KEY`: the key is its server's process."""
    return f"{_KEYED}{session_key}"


def session_key_of(address: str) -> str | None:
    """The key to tell the streamer; None where it finds its session by itself."""
    return address.removeprefix(_KEYED) if address.startswith(_KEYED) else None
