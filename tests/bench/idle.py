"""What a server and a streamer cost while nothing happens. Linux only: read from /proc."""

from pathlib import Path

import anyio
import psutil

from tests.bench import product
from tests.bench.figures import Figure, Limit
from tests.bench.product import Home
from tests.bench.scale import Scale

CPU_PERCENT = Limit("at most", 0.05)
WAKE_UPS_A_S = Limit("at most", 0.5, "all threads")
SETTLE_S = 15.0
"""After a send: its look-ups of the first seconds, and what start-up left to do."""


async def measure(folder: Path, scale: Scale) -> list[Figure]:
    """After one send that was shown, as a session that waits for the next."""
    home = Home(folder / "home")
    async with product.streamer(home, "reader") as streaming, product.sender(home) as client:
        await product.call(client, "send", text="hello", to="reader")
        streaming.show(await streaming.read())
        [server] = [child for child in psutil.Process().children() if "harness_adapters.mcp_server" in child.cmdline()]
        pids = {"server": server.pid, "streamer": streaming.process.pid}
        await anyio.sleep(min(SETTLE_S, scale.idle_s))
        before = {name: _usage(pid) for name, pid in pids.items()}
        await anyio.sleep(scale.idle_s)
        after = {name: _usage(pid) for name, pid in pids.items()}
    figures = []
    for what, unit, limit in (("CPU", "%", CPU_PERCENT), ("wake-ups", "/s", WAKE_UPS_A_S)):
        per_s = {name: (after[name][what] - before[name][what]) / scale.idle_s for name in pids}
        figures += [
            Figure(f"idle {name}, {what}", value, unit, count=int(scale.idle_s)) for name, value in per_s.items()
        ]
        figures.append(Figure(f"idle, both, {what}", sum(per_s.values()), unit, count=int(scale.idle_s), limit=limit))
    return figures


def _usage(pid: int) -> dict[str, float]:
    """Of all threads: processor seconds in hundredths, and how often one woke up from a wait."""
    statuses = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    wake_ups = sum(int(each.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for each in statuses)
    return {"CPU": product.processor_s(pid) * 100, "wake-ups": wake_ups}
