"""What `join` tells a session to run so that messages reach it, and how.

The command is the same for every session, and holds no quote where no path needs one, so that one
permission rule of Claude Code allows it: a rule with a quoted path did not match (2.1.332).
"""

import shlex
import sys
from pathlib import Path

MONITOR_TIMEOUT_MS = 1_800_000
"""Claude Code ends a Monitor after 30 minutes, whatever it was asked (2.1.332)."""

RESTART_S = 3
"""How long a plugin's monitor rests before it starts a killed streamer again: one that dies at each start
must not keep a processor busy."""

KILLED = 128
"""A shell's status of a command that a signal ended is this and the signal's number."""

_CLI = Path(__file__).parents[1] / "cli.py"


def launch_command(database: Path, default_database: Path, session: str | None) -> str:
    """The streamer's command line. `session`: where the streamer can't find its session by itself."""
    words = [sys.executable, "-I", "-m", "harness_adapters.cli", "monitor"]
    if database != default_database:
        words += ["--db", str(database)]
    if session is not None:
        words += ["--session", session]
    return shlex.join(words)


def plugin_monitor_command(database: Path, default_database: Path) -> str:
    """What a plugin's monitor runs: the streamer, again whenever it was killed.

    Claude Code arms a plugin's monitor once in a session's life (2.1.332), so nobody else would.
    """
    streamer = f"{launch_command(database, default_database, None)} --restartable"
    return f"while {streamer}; s=$?; [ $s -ge {KILLED} ]; do sleep {RESTART_S}; done; (exit $s)"


def missing_program() -> str | None:
    """What the command would run and is no longer there, after an uninstall under a running server; None: all is."""
    return next((str(path) for path in (Path(sys.executable), _CLI) if not path.exists()), None)


def how_to_run(command: str) -> str:
    """How Claude Code runs it."""
    quoted = (
        " A path in it needs quotes, which no permission rule of Claude Code matches: expect to be asked each time."
        if "'" in command
        else ""
    )
    return (
        f"Run `command` exactly as it is in the Monitor tool, with timeout_ms {MONITOR_TIMEOUT_MS} and description "
        "'agent-channel messages'. When it expires, run it again, nothing else. An event holds messages: a line "
        "`id room sender` (with `part=`, `age=`, `repeat=1` shown before perhaps: skip it if you have that id), then "
        "the text, each line after a `|`, or `…` where it goes on with the line before. "
        "`⟦U+XXXX⟧` is that character; &lt; &gt; &amp; are < > &." + quoted
    )


def how_to_run_elsewhere() -> str:
    """For a client that is neither Claude Code nor Codex."""
    return (
        "Run `command` in something that turns each line of a process's standard output into an event of this "
        "session, and keep it running. Add `--pace off` if that takes lines as fast as they come. An event holds "
        "messages: a line `id room sender`, then the text, each line after a `|`, or `…` where it goes on with the "
        "line before; `⟦U+XXXX⟧` is that character."
    )
