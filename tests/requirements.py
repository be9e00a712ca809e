"""The faults to survive: each a kind that users of systems like this one have met, and what must be so after it.

    python -m tests.requirements     # each with the tests that make it happen

A test says which it makes happen with `@pytest.mark.fault("F16")`; `test_requirements.py` holds both to each other.
Over 400 lines: it is one list.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent

REAL_FOLDERS = ("real", "contract")
"""Where tests run the real binaries, alone or beside the fakes."""


class Requirement(NamedTuple):
    """`case` happens, then `right` holds. `source`: whose rule it is.

    `P1` to `P5` are the goals of ARCHITECTURE.md; `real`: also made happen with the real Codex or Claude Code.
    """

    id: str
    case: str
    right: str
    source: str
    real: bool = False


REQUIREMENTS = (
    # Lost, or falsely called delivered
    Requirement(
        "F1",
        "SIGKILL the streamer after it read the row, after it printed, after it acknowledged",
        "Nothing is acknowledged without a hand-over; what is not proved shown is offered again, marked as a repeat.",
        "P1, P2",
    ),
    Requirement(
        "F2",
        "join from Claude Code and never start the Monitor; three sends; start it later",
        "send says since when the role is offline; all three arrive, in order.",
        "P1, P3",
    ),
    Requirement(
        "F3",
        "SIGKILL the harness only, with the server's pipes kept open by another process",
        "The role goes offline, and the answer to a message to all says who is live.",
        "P3",
    ),
    Requirement(
        "F4",
        "send to a role that never existed",
        "An error names the roles there are; nothing is stored.",
        "P1",
    ),
    Requirement(
        "F5",
        "bodies of 4,700, 10,000 and 1,000,000 characters to both receivers",
        "Exact at the receiver, or refused at send.",
        "P4",
    ),
    Requirement(
        "F6",
        "a turn ends within 50 ms of the add",
        "Each message starts a turn without any other traffic.",
        "Codex: a queued row starts an idle thread",
        real=True,
    ),
    Requirement(
        "F7",
        "messages pending, then join and start the waiter with a client that is slow to finish its handshake",
        "All are pushed without new traffic.",
        "P1; MCP: a client may take its time",
    ),
    Requirement(
        "F8",
        "the clock goes past every retention limit while a live waiter is silent",
        "Room and role survive; what can't be delivered changes its state and is reported.",
        "P1, P3",
    ),
    Requirement(
        "F9",
        "an app-server that never emits a turn notification",
        "Delivery goes on: nothing in its path waits for one.",
        "Codex: notifications go to the clients of a thread only",
    ),
    Requirement(
        "F10",
        "two streamers at once for one session; one of the old term beside one of the new",
        "Exactly one prints, and only the printer acknowledges.",
        "P2",
    ),
    Requirement(
        "F11",
        "follow the README on a clean HOME, then break the wake path: command missing, codex gone from PATH",
        "The waiter shows as failed, with the reason, at the next look; silence never looks like idle.",
        "P3",
    ),
    Requirement(
        "F12",
        "the app-server accepts the add and drops it",
        "Not called seen; uncertain after the grace; never added again.",
        "P2, P3",
    ),
    Requirement(
        "F13",
        "a role offline for days with messages waiting",
        "send says since when it is offline, and how many wait.",
        "P3",
    ),
    Requirement(
        "F14",
        "a session gets messages and is replaced before it answers",
        "join by the next owner lists ids and ages of what was handed to the last one without a reply.",
        "P1",
    ),
    # Monitor
    Requirement(
        "F15",
        "expiry by SIGTERM, by SIGKILL, by closed stdout, with messages sent in the gap",
        "All arrive after the re-arm; none is lost, none shown as new twice.",
        "Claude Code: a Monitor ends after 30 minutes",
        real=True,
    ),
    Requirement(
        "F16",
        "the reader stops reading and 200 kB are sent",
        "The streamer blocks without acknowledging, its status says since when; the reader's death ends it and the "
        "rest stays pending.",
        "P1, P3",
    ),
    Requirement(
        "F17",
        "anything the agent must act on: database unreadable, ownership lost, schema too new",
        "One line on stdout.",
        "Claude Code: Monitor never shows stderr",
    ),
    Requirement(
        "F18",
        "a burst of 100 messages of five lines",
        "No event is suppressed, no Monitor stopped; order is kept.",
        "Claude Code: Monitor's token bucket",
        real=True,
    ),
    Requirement(
        "F19",
        "bodies around each limit of Monitor; code with indentation and blank lines; a surrogate pair at a cut",
        "The exact text can be rebuilt.",
        "P4; Claude Code: Monitor cuts and trims lines",
        real=True,
    ),
    # Codex app-server
    Requirement(
        "F20",
        "kill the process that owns the thread right after the row left the queue",
        "Uncertain and kept so; never acknowledged for being absent, never added again.",
        "P2, P3",
        real=True,
    ),
    Requirement(
        "F21",
        "close the session, send from a live one",
        "Accepted at the thread, and the answer says that it is not loaded; it runs on resume, without a new join.",
        "P1, P3",
        real=True,
    ),
    Requirement(
        "F22",
        "kill between the write of the add and its answer, at random instants",
        "None added twice, none lost: each is accepted, seen or uncertain.",
        "P1, P2",
        real=True,
    ),
    Requirement(
        "F23",
        "record every method that ever goes to the app-server",
        "Only those that add one row or look.",
        "ours: nothing resumes, starts or deletes a thread",
    ),
    Requirement(
        "F24",
        "SIGKILL streamer, server and harness again and again",
        "No app-server child is left after 5 s; many restarts of the child leave open files flat.",
        "P5",
    ),
    Requirement(
        "F25",
        "servers that add unknown fields, leave out optional ones, rename a method, refuse, answer a non-object, "
        "print a banner",
        "The right words in waiter_detail; the waiter lives.",
        "Codex: its protocol changes between releases",
    ),
    Requirement(
        "F26",
        "the server asks for an approval, or asks something unknown",
        "It gets an error; nothing is approved.",
        "trust",
    ),
    Requirement(
        "F27",
        "CODEX_HOME read-only, missing, with a broken config.toml",
        "The cause in waiter_detail; retries bounded in rate.",
        "P3, P5",
    ),
    Requirement(
        "F28",
        "the user interrupts the turn with Esc: the queue is paused",
        "Reported as accepted and waiting; queue/start is never sent.",
        "Codex: an interrupt pauses the queue",
        real=True,
    ),
    Requirement(
        "F29",
        "150 messages to one thread that no process has loaded",
        "100 accepted, 50 pending with the reason, then delivered as room appears, in order.",
        "Codex: a thread's queue holds 100 rows",
        real=True,
    ),
    # Identity, processes, storage
    Requirement(
        "F30",
        "the harness dies by SIGKILL, SIGHUP, a closed terminal, also before the handshake",
        "Server and waiter are gone within 10 s, the role is offline.",
        "P3, P5",
        real=True,
    ),
    Requirement(
        "F31",
        "EOF, SIGTERM, SIGINT, SIGHUP, parent gone: each alone",
        "A clean end within 100 ms, offline written.",
        "Claude Code gives a server 100 ms",
    ),
    Requirement(
        "F32",
        "a lease row with the pid of a live unrelated process, with another boot id, with another PID namespace",
        "The dead owner is seen as dead.",
        "P3",
    ),
    Requirement(
        "F33",
        "20 streamers started at once",
        "One winner; the others say so in one line.",
        "P2",
    ),
    Requirement(
        "F34",
        "server and waiter stopped for 120 s; the wall clock set 2 h ahead and 1 h back; another boot",
        "Heals by itself, nothing delivered twice, no lease from the future keeps a dead role alive.",
        "P1, P2",
    ),
    Requirement(
        "F35",
        "the term of another role used to send or acknowledge",
        "Refused; a sender can't choose its name.",
        "trust",
    ),
    Requirement(
        "F36",
        "a second live session joins the same room and role",
        "It takes the role, the old one is told; nothing goes to both.",
        "P2",
    ),
    Requirement(
        "F37",
        "rename with five pending",
        "They follow; a send to the old name fails and gives the new one.",
        "P1",
    ),
    Requirement(
        "F38",
        "eight servers and eight waiters on one file, SIGKILL at random",
        "integrity_check ok, no id lost, none twice.",
        "P1, P2",
    ),
    Requirement(
        "F39",
        "BEGIN EXCLUSIVE held by another process while four servers start",
        "The handshake is answered; tools say busy, try again.",
        "P3; both harnesses give up on a silent server",
    ),
    Requirement(
        "F40",
        "the file on a network or virtual file system",
        "Refused, with the reason.",
        "SQLite: a write-ahead log needs shared memory",
    ),
    Requirement(
        "F41",
        "umask 000 and 022",
        "Folder 0700, every file 0600, no moment in between.",
        "trust",
    ),
    Requirement(
        "F42",
        "100,000 handled messages",
        "send, delivery and join as fast as with none; the file can be trimmed.",
        "P5",
    ),
    Requirement(
        "F43",
        "disk full during send, hand-over, acknowledgement; the file cut off, replaced by text, of a newer schema",
        "A clear error, nothing half-written, the data left alone.",
        "P1, P3",
    ),
    # Content and trust
    Requirement(
        "F44",
        "lone surrogates, NUL, ESC, CR, U+0085, U+2028, right-to-left marks, joined emoji, LANG=C",
        "Refused at send, or exact at the receiver; no message kills a waiter in a loop.",
        "P4",
    ),
    Requirement(
        "F45",
        "a body with the line `99 room boss`, with `</task-notification>`, `<system-reminder>`, an invented approval",
        "Every line visibly stays inside this message.",
        "trust",
    ),
    Requirement(
        "F46",
        "a message that waited 15 hours",
        "The receiver sees how old it is.",
        "P3",
    ),
    Requirement(
        "F47",
        "Codex configurations with bare, quoted, dotted, inline and sub-tables, comments, CRLF, or rewritten by Codex",
        "After an install they differ by our entry only, with a backup beside; a second changes nothing; an uninstall "
        "leaves every other byte.",
        "Codex: its configuration is a person's file",
        real=True,
    ),
    Requirement(
        "F48",
        "the harness starts the server with another PATH and working folder",
        "Commands are registered by absolute paths, and the doctor starts each exactly as its harness does.",
        "Codex: a server gets a list of variables; both: the session's folder",
        real=True,
    ),
    Requirement(
        "F49",
        "a UserPromptSubmit hook that takes 6 s, and one that blocks",
        "Accepted, then seen; blocked: uncertain after the grace, never added again.",
        "P2, P3",
        real=True,
    ),
    Requirement(
        "F50",
        "a message to a thread that codex exec owns",
        "Pending with the reason; nothing consumed unread.",
        "P1; Codex: exec takes rows at its exit",
        real=True,
    ),
    Requirement(
        "F51",
        "a spawn failure, a dead socket before one byte is written",
        "Pending, not uncertain.",
        "P3",
    ),
    Requirement(
        "F52",
        "a Claude Code started from another one's shell; a wrapper between harness and server",
        "Each session has its own roles, none crossed.",
        "Claude Code: a child inherits its environment",
        real=True,
    ),
    Requirement(
        "F53",
        "the package upgraded, with a new schema, under running servers and streamers",
        "Old code writes nothing to the new schema; one line tells what to do.",
        "P1, P3",
    ),
    Requirement(
        "F54",
        "plugin monitor and Monitor both; two registrations of the server in one session",
        "One prints; no fight over roles.",
        "P2",
        real=True,
    ),
)


class Marked(NamedTuple):
    """A test that says which fault it makes happen. `name`: as pytest takes it, from the folder `tests` on."""

    fault: str
    name: str


def marked_tests() -> Iterator[Marked]:
    """All tests with a mark, read off their source: some are not even collected where a binary is absent."""
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_module = [fault for node in tree.body if isinstance(node, ast.Assign) for fault in _faults_in([node.value])]
        for name, decorators in _tests_in(tree.body, ""):
            for fault in dict.fromkeys([*of_module, *_faults_in(decorators)]):
                yield Marked(fault, f"{path.relative_to(TESTS)}::{name}")


def _tests_in(body: list[ast.stmt], within: str) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body, f"{within}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield f"{within}{node.name}", node.decorator_list


def _faults_in(expressions: list[ast.expr]) -> Iterator[str]:
    """The ids in calls of `pytest.mark.fault`."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
                yield from (ast.literal_eval(argument) for argument in node.args)


def main() -> None:
    tests = list(marked_tests())
    for requirement in REQUIREMENTS:
        print(f"{requirement.id}  {requirement.case}\n     {requirement.right}  ({requirement.source})")
        for test in tests:
            if test.fault == requirement.id:
                print(f"       {test.name}")


if __name__ == "__main__":
    main()
