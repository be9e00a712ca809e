"""The Claude Code plugin: server, skill and a monitor that its terminal program arms by itself at the start.

It is the folder of the skill's copy with three files more, which Claude Code 2.1.332 loads as
`agent-channel@skills-dir` (https://code.claude.com/docs/en/plugins-reference, "Skills-directory plugins"): nothing
is written to a file of Claude Code's own, and whoever removes the folder has removed all of it. Where the same
server is registered by itself too, Claude Code starts one of the two (2.1.332).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from channel.place import default_database
from harness_adapters.claude.launch_command import plugin_monitor_command
from harness_adapters.installation.client import SERVER_NAME, Account, CantChange, Registration
from harness_adapters.installation.file_change import FileChange, read
from harness_adapters.installation.skill import skill_files

MANIFEST, SERVERS, MONITORS = ".claude-plugin/plugin.json", ".mcp.json", "monitors/monitors.json"


def plugin_folder(account: Account) -> Path:
    """The skill's copy for Claude Code is in it too: it is the plugin's skill."""
    return skill_files(account)["claude-code"].parent


def is_installed(account: Account) -> bool:
    """Of whatever version, and for whatever channel."""
    return (plugin_folder(account) / MANIFEST).exists()


def planned_install(account: Account, server: Registration) -> "PluginChange | None":
    """All but the skill. None: it stands there already. Raises CantChange."""
    return _planned(plugin_folder(account), {name: text.encode() for name, text in plugin_files(server).items()})


def planned_removal(account: Account) -> "PluginChange | None":
    """All but the skill. None: nothing of it is there. Raises CantChange."""
    return _planned(plugin_folder(account), dict.fromkeys((MANIFEST, SERVERS, MONITORS)))


def plugin_files(server: Registration) -> Mapping[str, str]:
    """Texts by their paths below the folder. Commands are absolute: Claude Code has another PATH than we have now."""
    monitor = plugin_monitor_command(server.database or default_database(), default_database())
    manifest = {
        "name": SERVER_NAME,
        "version": version("agent-channel"),
        "description": "Messages between this session and agents in other sessions, over one local channel.",
        "author": {"name": "The agent-channel authors"},
    }
    return {
        MANIFEST: _json(manifest),
        SERVERS: _json({"mcpServers": {SERVER_NAME: {"command": server.command, "args": list(server.args)}}}),
        MONITORS: _json([{"name": "messages", "command": monitor, "description": "agent-channel messages"}]),
    }


@dataclass(frozen=True)
class PluginChange:
    """Files made, changed or removed, one after the other."""

    folder: Path
    files: tuple[FileChange, ...]

    def diff(self) -> str:
        return "".join(file.diff() for file in self.files)

    def apply(self) -> str:
        """Raises CantChange; the same again does what is left."""
        for file in self.files:
            file.apply()
            if file.after is None:
                self._remove_empty_folders(file.path.parent)
        is_removal = all(file.after is None for file in self.files)
        return f"removed the plugin from {self.folder}" if is_removal else f"the plugin is in {self.folder}"

    def _remove_empty_folders(self, folder: Path) -> None:
        with suppress(OSError):  # something is left in it
            while folder.is_relative_to(self.folder):
                folder.rmdir()
                folder = folder.parent


def _planned(folder: Path, wanted: Mapping[str, bytes | None]) -> PluginChange | None:
    files = [FileChange(folder / name, _read(folder / name), after) for name, after in wanted.items()]
    changed = tuple(file for file in files if file.before != file.after)
    return PluginChange(folder, changed) if changed else None


def _read(path: Path) -> bytes | None:
    try:
        return read(path)
    except OSError as error:
        raise CantChange(f"{path} can't be read: {error.strerror}", "Make it readable, and run it again.") from error


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
