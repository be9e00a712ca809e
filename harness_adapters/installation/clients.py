"""The clients that can be told of our server, by name."""

from collections.abc import Callable, Mapping

from harness_adapters.installation.claude_code import ClaudeCode
from harness_adapters.installation.client import Account, Client
from harness_adapters.installation.codex import codex
from harness_adapters.installation.json_clients import antigravity, cursor, opencode

CLIENTS: Mapping[str, Callable[[Account], Client]] = {
    "claude-code": ClaudeCode,
    "codex": codex,
    "cursor": cursor,
    "antigravity": antigravity,
    "opencode": opencode,
}


def all_clients(account: Account) -> list[Client]:
    """Every one, found or not, in the order of CLIENTS."""
    return [make(account) for make in CLIENTS.values()]
