"""Whose session, on real process trees. The notes are Claude Code's, seen in 2.1.332; the choice is ours."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness_adapters.claude.session import (
    ClaudeSession,
    config_folder,
    session_in,
    session_of_server,
    session_of_streamer,
    transcript_of,
    transcript_path,
)
from waiters.processes import ProcessIdentity, identity_of

SESSION = "16995a7c-f687-40db-85cf-f120b3d4ddb2"
OTHER_SESSION = "00000000-f687-40db-85cf-f120b3d4ddb2"
RUN_THE_REST = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"

Tree = Callable[..., list[int]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "sessions").mkdir()
    return tmp_path


@pytest.fixture
def process_tree(tmp_path: Path) -> Iterator[Tree]:
    """Starts processes with these names below each other; their pids from the top down."""
    with ExitStack() as running:

        def start(*names: str) -> list[int]:
            command: list[str] = []
            for name in names:
                program = tmp_path / "bin" / name
                program.parent.mkdir(exist_ok=True)
                # A copy named as the process shall be: a script's own name would be its interpreter's.
                if not program.exists():
                    shutil.copy("/bin/bash", program)
                # Two commands, else the shell is replaced by the only one.
                command += [str(program), "-c", '"$@"; exit', name]
            report = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
            process = running.enter_context(
                subprocess.Popen(
                    [*command, sys.executable, "-c", report], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            assert process.stdout is not None
            pids = [int(process.stdout.readline())]
            while pids[-1] != process.pid:
                pids.append(parent(pids[-1]))
            return pids[::-1]

        yield start


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def identity(pid: int) -> ProcessIdentity:
    found = identity_of(pid)
    assert found is not None
    return found


def write_note(config: Path, pid: int, session: str = SESSION, **changes: object) -> None:
    note = {"pid": pid, "sessionId": session, "cwd": "/home/me/my_app.x", "procStart": str(identity(pid).start)}
    (config / "sessions" / f"{pid}.json").write_text(json.dumps({**note, **changes}))


def test_the_session_is_the_one_noted_for_a_process_above(config: Path, process_tree: Tree) -> None:
    claude, *_, server = process_tree("claude")
    write_note(config, claude)

    assert session_of_server(server, config) == ClaudeSession(identity(claude), SESSION, "/home/me/my_app.x")
    assert transcript_of(identity(claude), config) == config / "projects" / "-home-me-my-app-x" / f"{SESSION}.jsonl"


@pytest.mark.fault("F52")
def test_a_claude_inside_another_ones_shell_has_its_own_session(config: Path, process_tree: Tree) -> None:
    outer, _, inner, _, server = process_tree("claude", "bash", "claude", "sh")
    write_note(config, outer, OTHER_SESSION)
    write_note(config, inner, SESSION)

    found = session_of_server(server, config)
    assert found is not None
    assert (found.process.pid, found.session_id) == (inner, SESSION)
    assert session_of_streamer(server, config, {"CLAUDE_PID": str(outer)}) == found


@pytest.mark.fault("F52")
def test_wrappers_between_claude_and_the_server_are_passed_over(config: Path, process_tree: Tree) -> None:
    claude, *_, server = process_tree("claude", "sh", "uv", "python3.12")
    assert session_of_server(server, config) == ClaudeSession(identity(claude), None, None)

    write_note(config, claude)
    found = session_of_server(server, config)
    assert found is not None and found.process.pid == claude


@pytest.mark.fault("F52")
def test_a_note_left_by_a_dead_process_with_the_same_pid_is_not_believed(config: Path, process_tree: Tree) -> None:
    claude, *_, server = process_tree("claude")
    write_note(config, claude, procStart="1")

    assert session_of_server(server, config) == ClaudeSession(identity(claude), None, None)


def test_a_shell_with_the_pid_of_a_dead_claude_is_not_taken_for_it(config: Path, process_tree: Tree) -> None:
    """Notes of older versions lack the start."""
    claude, shell, server = process_tree("claude", "bash")
    write_note(config, claude, procStart=None)
    write_note(config, shell, OTHER_SESSION, procStart=None)

    found = session_of_server(server, config)
    assert found is not None
    assert found.session_id == SESSION


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x"}'])
def test_a_note_that_can_not_be_read_counts_as_none(config: Path, process_tree: Tree, text: str) -> None:
    claude, *_, server = process_tree("claude")
    (config / "sessions" / f"{claude}.json").write_text(text)

    assert session_of_server(server, config) == ClaudeSession(identity(claude), None, None)


@pytest.mark.parametrize("session_id", [None, 7, "", "../../etc/passwd", "*"])
def test_a_note_without_a_proper_session_id_still_tells_the_process(
    config: Path, process_tree: Tree, session_id: object
) -> None:
    claude, *_, server = process_tree("claude", "node")
    write_note(config, claude, sessionId=session_id)

    assert session_of_server(server, config) == ClaudeSession(identity(claude), None, None)
    assert transcript_of(identity(claude), config) is None


def test_the_streamer_believes_claude_pid_only_of_a_process_above(config: Path, process_tree: Tree) -> None:
    claude, other, streamer = process_tree("claude", "wrapper")

    for told, believed in ((claude, claude), (os.getpid(), os.getpid()), (streamer, other), (2**22 + 1, other)):
        found = session_of_streamer(streamer, config, {"CLAUDE_PID": str(told)})
        assert found == ClaudeSession(identity(believed), None, None)
    assert session_of_streamer(streamer, config, {}) == ClaudeSession(identity(other), None, None)
    assert session_of_streamer(streamer, config, {"CLAUDE_PID": "junk"}) == ClaudeSession(identity(other), None, None)


def test_after_clear_the_note_gives_the_new_session(config: Path, process_tree: Tree) -> None:
    claude, *_ = process_tree("claude")
    for session in (SESSION, OTHER_SESSION):
        write_note(config, claude, session)
        found = session_in(identity(claude), config)
        assert found is not None and found.session_id == session
        transcript = transcript_of(identity(claude), config)
        assert transcript is not None and transcript.stem == session


def test_a_session_that_ended_cleanly_has_no_note(config: Path, process_tree: Tree) -> None:
    claude, *_ = process_tree("claude")

    assert session_in(identity(claude), config) is None


def test_a_transcript_under_another_folder_is_found_by_its_session(config: Path) -> None:
    moved = config / "projects" / "-elsewhere" / f"{SESSION}.jsonl"
    moved.parent.mkdir(parents=True)
    moved.touch()

    assert transcript_path(config, SESSION, "/home/me") == moved


def test_the_config_folder_is_chosen_as_claude_code_does() -> None:
    assert config_folder({"CLAUDE_CONFIG_DIR": "/cfg", "HOME": "/home/me"}) == Path("/cfg")
    assert config_folder({"HOME": "/home/me"}) == Path("/home/me/.claude")
    assert config_folder({}) == Path.home() / ".claude"
