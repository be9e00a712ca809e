"""From the call of `send` to the model of an idle real Codex, over the daemon that its terminal started."""

import sys
import time
from pathlib import Path

import anyio

from fakes.responses_api import serve_responses_api
from tests.bench.figures import Figure, Limit, series
from tests.bench.scale import Scale
from tests.real.binaries import NODE_MODULES
from tests.real.channel_rig import JOIN, TURN_DONE, ChannelRig
from tests.real.codex_home import codex_home
from tests.real.codex_rig import codex_terminal

TURN_MS = Limit("at most", 200)
BETWEEN_S = 1.0
"""By then the turn of the last message is over, and the thread idle again."""

WAIT_S = 60.0


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    """Without the real Codex there is nothing to measure, and it says so."""
    if not list(NODE_MODULES.glob("@openai/codex-*/vendor/*/bin/codex")):
        print("the real Codex is not installed: run `npm ci --ignore-scripts` in tests/real", file=sys.stderr)
        return []
    taken_ms = []
    async with codex_home(folder) as codex, serve_responses_api() as model:
        rig = ChannelRig(codex, model)
        async with codex_terminal(codex, JOIN) as user, rig.peer("tester") as tester:
            with anyio.fail_after(WAIT_S):
                await user.wait_for_output(TURN_DONE)
            for number in range(scale.codex_turns):
                await anyio.sleep(BETWEEN_S)
                with anyio.fail_after(WAIT_S):
                    began = time.perf_counter()
                    await tester.send(f"message {number}", "codex")
                    await rig.until_shown(f"message {number}")
                    taken_ms.append((time.perf_counter() - began) * 1_000)
    return [series("send to the turn of an idle Codex", taken_ms, "ms", TURN_MS)]
