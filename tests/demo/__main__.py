"""`make demo`: the main job on one screen. Two agents in two harnesses, one channel, messages both ways.

    python -m tests.demo [--codex PATH]

It runs in a temporary HOME and ends everything that it started. Exit status 0 only if every message arrived
exactly, once and in order, and was seen.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import zip_longest
from pathlib import Path

import anyio

from harness_adapters.claude.framing import decode
from tests import campaigns
from tests.demo.claude import PROTOCOL as CLAUDE_PROTOCOL
from tests.demo.claude import VERSION, ClaudeSide, claude_session
from tests.demo.codex import PROTOCOL as CODEX_PROTOCOL
from tests.demo.codex import CodexSide, fake_codex, real_codex
from tests.demo.report import Sent, all_sent, table

ROOM, CLAUDE, CODEX = "demo", "planner", "builder"
LIMIT_S = 60.0
"""For everything; a run takes a few seconds, and a real Codex some more on its first start."""

SEEN_S_MAX = 20.0
"""What is not seen by then is shown as it is; the looks come 1, 2, 5 and 10 s after a hand-over."""

LOOK_S = 0.05

TO_CODEX = (
    "Please write fib.py and tell me when it runs.",
    "Two more things:\n\n  - no recursion\n\t- <type hints> & a docstring  \n",
    "7 demo planner\nA text that looks like a message of its own. ⟦U+0041⟧ 🦀",
)
TO_CLAUDE = (
    "Which Python?",
    "def fib(n: int) -> int:\n    a, b = 0, 1\n\n    for _ in range(n):\n        a, b = b, a + b\n    return a   \n",
    "".join(f"line {number:3}: {'x' * (number % 40)}\n" for number in range(150)),
)


async def run(codex: Path | None) -> bool:
    """The whole demo; True if every message arrived as it should."""
    with tempfile.TemporaryDirectory(prefix="agent-channel-", dir=_short_temporary_folder()) as folder:
        root = Path(folder).resolve()
        database = root / "channel" / "channel.db"
        server = [sys.executable, "-I", "-m", "harness_adapters.mcp_server", "--db", str(database)]
        claude_home = root / "claude"
        claude_home.mkdir()
        with anyio.fail_after(LIMIT_S):
            async with _codex_side(codex, root, server) as codex_side, claude_session(claude_home, server) as claude:
                print(f"Claude Code  played by this program ({VERSION}, MCP {CLAUDE_PROTOCOL}), with a fake Monitor")
                print(f"Codex        {codex_side.what} (MCP {CODEX_PROTOCOL})")
                return await _converse(claude, codex_side, database)


async def _converse(claude: ClaudeSide, codex: CodexSide, database: Path) -> bool:
    joined = await codex.call("join", room=ROOM, name=CODEX)
    print(f"\n{CODEX} joins as a Codex thread: waiter {joined['waiter']}")
    joined = await claude.call("join", room=ROOM, name=CLAUDE)
    print(f"{CLAUDE} joins in Claude Code: waiter {joined['waiter']}, so it runs in Monitor:\n  {joined['command']}\n")
    async with claude.monitoring(joined["command"]):
        for to_codex, to_claude in zip_longest(TO_CODEX, TO_CLAUDE):
            await claude.call("send", text=to_codex, to=CODEX)
            await codex.call("send", text=to_claude, to=CLAUDE)
        sent = await _all_seen(database)
    at_codex, at_claude = await _arrived_at_codex(codex), _arrived_at_claude(claude)
    print("What Claude Code's model is shown of the first message to it, and Codex's of the first to it:")
    for text in [*claude.events[:1], *(await codex.shown())[:1]]:
        print("".join(f"  > {line}\n" for line in text.split("\n")))
    arrived = [_judge(each, at_codex if each.recipient == CODEX else at_claude) for each in sent]
    print(table(sent, arrived))
    good = _in_order(sent, CODEX) == at_codex and _in_order(sent, CLAUDE) == at_claude
    good = good and all(each.steps[-1].state == "seen" for each in sent)
    print(
        "\nEvery message arrived exactly, once, in order, and was seen."
        if good
        else "\nNOT all arrived as they should."
    )
    return good


async def _all_seen(database: Path) -> list[Sent]:
    """Wait until each message was found where its model reads it, or SEEN_S_MAX are over."""
    with anyio.move_on_after(SEEN_S_MAX):
        while not all(each.steps[-1].state == "seen" for each in all_sent(database)):  # noqa: ASYNC110
            await anyio.sleep(LOOK_S)
    return all_sent(database)


async def _arrived_at_codex(codex: CodexSide) -> list[tuple[int, str]]:
    """Message ids and texts, less the two lines that say what they are."""
    wholes = [text.split("\n", 2) for text in await codex.shown()]
    return [(int(whole[0].split(" ")[0]), whole[2]) for whole in wholes]


def _arrived_at_claude(claude: ClaudeSide) -> list[tuple[int, str]]:
    return [(header.message_id, text) for header, text in (decode(whole.lines) for whole in claude.deliveries())]


def _in_order(sent: Sequence[Sent], recipient: str) -> list[tuple[int, str]]:
    return [(each.message_id, each.text) for each in sent if each.recipient == recipient]


def _judge(sent: Sent, arrived: Sequence[tuple[int, str]]) -> str:
    texts = [text for message_id, text in arrived if message_id == sent.message_id]
    if texts == [sent.text]:
        return "exactly"
    return f"{len(texts)} times" if len(texts) != 1 else "CHANGED"


def _codex_side(codex: Path | None, root: Path, server: list[str]) -> AbstractAsyncContextManager[CodexSide]:
    return fake_codex(root / "codex", server) if codex is None else real_codex(codex, root / "codex", server)


def _short_temporary_folder() -> str | None:
    """A socket's path may have 104 bytes; macOS's own temporary folder is too long for that."""
    return "/tmp" if Path("/tmp").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--codex", help="a real Codex (default: codex on PATH, else the fake app-server)")
    named = parser.parse_args().codex
    codex = shutil.which(named or "codex")
    if named and codex is None:
        parser.error(f"{named} is no program that can be started")
    began_at = time.monotonic()
    good = campaigns.run(run, Path(codex).resolve() if codex else None)
    print(f"{time.monotonic() - began_at:.1f} s, everything ended, nothing left behind.")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(campaigns.until_interrupted(main))
