"""Where the pinned real harness binaries are, and why a test may skip.

They come from `package.json` beside this file (`npm ci --ignore-scripts`, in this folder). The native
binaries are used by path, without their node launchers. `.ci/run` sets AGENT_CHANNEL_REQUIRE_REAL=1,
and then a missing binary is a failure.
"""

import os
from pathlib import Path

import pytest

NODE_MODULES = Path(__file__).parent / "node_modules"
CODEX_VERSION = "0.171.0"
CLAUDE_VERSION = "2.1.332"


def codex_binary() -> Path:
    """The native Codex binary; skips the test, aloud, where it is not installed."""
    return _require("codex", sorted(NODE_MODULES.glob("@openai/codex-*/vendor/*/bin/codex")))


def claude_binary() -> Path:
    """The native Claude Code binary; skips the test, aloud, where it is not installed."""
    return _require("claude", sorted(NODE_MODULES.glob("@anthropic-ai/claude-code-*/claude")))


def _require(name: str, found: list[Path]) -> Path:
    if found:
        return found[0]
    reason = f"the real {name} is not installed: run `npm ci --ignore-scripts` in tests/real"
    if os.environ.get("AGENT_CHANNEL_REQUIRE_REAL"):
        pytest.fail(reason)
    pytest.skip(reason)
