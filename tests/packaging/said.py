"""How each error text that docs/troubleshooting.md quotes is made to come out of the product.

The tables have it by the text as it stands on the page, where `…` is what differs. Each case gets a `Place` of its own.
"""

import os
import socket
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2

from channel.database import open_database
from channel.errors import ChannelError
from channel.membership import Caller
from channel.mounts import Mount
from harness_adapters.composition import Channel
from harness_adapters.view.app import view_app
from harness_adapters.view.feed import PAGES_MAX, Feed, TooManyPages
from harness_adapters.view.guard import TOKEN_HEADER
from harness_adapters.view.snapshots import Snapshots
from tests.integration.stuck_deliveries import COMMAND_LINE, Stuck, one_more_session
from tests.integration.test_install_command import Home

RUN_S = 60
PORT, TOKEN = 4321, "0" * 32


@dataclass
class Place:
    """The deliveries of `stuck_deliveries` with our command line on them, and the same channel open in the test."""

    root: Path
    stuck: Stuck
    channel: Channel

    def run(self, *words: str, database: Path | None = None, told: bytes = b"", output: int = subprocess.PIPE) -> str:
        """What a command that fails says on standard error."""
        done = subprocess.run(
            [*COMMAND_LINE, "--db", str(database or self.stuck.database), *words],
            env={"HOME": str(self.root), "PATH": os.defpath},
            input=told,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=RUN_S,
        )
        assert done.returncode == 1, done
        return done.stderr.decode()

    async def join(self, caller: Caller, room: str, name: str, policy: str | None = None) -> str:
        return await refusal(self.channel.membership.join(caller, room, name, policy))

    async def joins_cellar(self) -> None:
        await self.channel.membership.join(self.planner, "cellar", "planner", None)

    async def send(self, text: str = "hello", *, to: str | None = None, room: str | None = None) -> str:
        """As the planner does."""
        return await refusal(self.channel.sending.send("session:planner", text, [to] if to else None, room))

    @property
    def planner(self) -> Caller:
        process = self.channel.process.to_text()
        return Caller("session:planner", "other", process, process)


Said = Callable[[Place], Awaitable[str]]


async def refusal(call: Awaitable[object]) -> str:
    """Why it is refused; "" if it is not."""
    try:
        await call
    except ChannelError as error:
        return str(error)
    return ""


async def _in_two_rooms(place: Place) -> str:
    await place.joins_cellar()
    return await place.send()


async def _alone_in_a_room(place: Place) -> str:
    await place.joins_cellar()
    return await place.send(room="cellar")


async def _after_another_took_the_role(place: Place) -> str:
    await place.join(one_more_session(place.channel), "hall", "planner")
    return await place.send()


BY_A_TOOL: Mapping[str, Said] = {
    "This session has joined no room. Call join(room, name) first.": lambda place: refusal(
        place.channel.sending.send("session:stranger", "hello", None, None)
    ),
    "This session has no role in the room …": lambda place: place.send(room="cellar"),
    "This session has joined several rooms (…), so which one is meant is not clear.": _in_two_rooms,
    "This session is … in the room … already, and holds one role a room (its sub-agents share it).": lambda place: (
        place.join(place.planner, "hall", "boss")
    ),
    "The name … is taken in the room …. Choose another name.": lambda place: refusal(
        place.channel.membership.rename("session:planner", "builder", None)
    ),
    "Another session has joined the room … as … and holds that role now.": _after_another_took_the_role,
    "The room … has no role ….": lambda place: place.send(to="nobody"),
    "Nobody would get a message to all in the room …: no other role has joined it": _alone_in_a_room,
    "… is this session's own role. Name another role. Nothing was sent.": lambda place: place.send(to="planner"),
    "The text can't be sent: it is empty.": lambda place: place.send(""),
    "The text can't be sent: … is half of a surrogate pair": lambda place: place.send("cut \ud83d", to="builder"),
    "The … name … can't be used: …": lambda place: place.join(place.planner, "the hall", "planner"),
    "The policy can't be stored: …": lambda place: place.join(place.planner, "hall", "planner", "p" * 2_001),
}


async def _locked(place: Place) -> str:
    await place.channel.database.read("PRAGMA busy_timeout=1")
    with closing(sqlite3.connect(place.stuck.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        return await place.send(to="builder")


async def _full(place: Place) -> str:
    """SQLite's own limit of pages stands for the disk: the error is the same."""
    (pages,) = (await place.channel.database.read("PRAGMA page_count"))[0]
    await place.channel.database.read(f"PRAGMA max_page_count = {pages + 2}")
    return await place.send("x" * 100_000, to="builder")


async def _read_only(place: Place) -> str:
    """SQLite's own switch stands for the file system: the error is the same."""
    await place.channel.database.read("PRAGMA query_only = 1")
    return await place.send(to="builder")


async def _newer(place: Place) -> str:
    with closing(sqlite3.connect(place.stuck.database)) as database:
        database.execute("PRAGMA user_version = 99")
    return place.run("rooms")


async def _moved(place: Place) -> str:
    place.stuck.database.rename(place.root / "moved.db")
    return await place.send(to="builder")


async def _no_channel(place: Place) -> str:
    notes = place.root / "notes" / "channel.db"
    notes.parent.mkdir(mode=0o700)
    notes.write_text("This is no database.\n" * 100)
    return place.run("rooms", database=notes)


async def _open_to_others(place: Place) -> str:
    place.stuck.database.parent.chmod(0o777)
    return place.run("rooms")


async def _on_a_shared_disk(place: Place) -> str:
    async def opened() -> None:
        async with open_database(
            place.root / "x" / "channel.db", durable=False, mounts=lambda: [Mount(Path("/"), "nfs4")]
        ):
            pass

    return await refusal(opened())


async def _missing(place: Place) -> str:
    return place.run("rooms", database=place.root / "nothing" / "channel.db")


OF_THE_FILE: Mapping[str, Said] = {
    "There is no channel at …: no session has joined one yet, or --db names another file.": _missing,
    "The channel's database is locked by another process. Nothing was stored; try again.": _locked,
    "The disk that holds … is full.": _full,
    "… can't be written: it, its folder or its file system is read-only here.": _read_only,
    "agent-channel was upgraded: the database has schema …, and this process knows ….": _newer,
    "… was moved away, removed or replaced while this process had it open.": _moved,
    "… can't be used as a channel: …": _no_channel,
    "… is not safe for a channel: others may write in this folder": _open_to_others,
    "… is not safe for a channel: … is a file system that other machines may share": _on_a_shared_disk,
}


def _command(*words: str) -> Said:
    async def said(place: Place) -> str:
        return place.run(*words)

    return said


async def _without_codex(place: Place) -> str:
    (place.root / "codex").unlink()
    return place.run("deliveries", "look", "2")


async def _of_odd_bytes(place: Place) -> str:
    return place.run("send", "hall", "builder", "-", told=b"\xff")


async def _onto_a_full_device(place: Place) -> str:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        return place.run("rooms", output=full)
    finally:
        os.close(full)


BY_A_COMMAND: Mapping[str, Said] = {
    "There is no room … in this channel.": _command("history", "hal"),
    "There is no message … in this channel. Check the number and the database.": _command("message", "99"),
    "There is no delivery … in this channel.": _command("deliveries", "show", "99"),
    "Delivery … is pending and was not sent again: …": _command("deliveries", "resend", "3"),
    "Delivery … is seen and was not dropped: …": _command("deliveries", "drop", "1"),
    "Delivery … can't be looked for: …": _without_codex,
    "The role … in the room … is another session's, and a person does not take it over.": _command(
        "send", "hall", "builder", "--as", "planner", "hello"
    ),
    "The text can't be sent: it is no UTF-8 (byte …). Convert it first.": _of_odd_bytes,
    "the output can't be written: …": _onto_a_full_device,
}


def _install(
    *words: str, codex: str = "", cursor: str = "{}", status: int = 1, change: Callable[[Home], object] | None = None
) -> Said:
    """`agent-channel install` with these settings of Codex and Cursor, in an account without Claude Code."""

    async def said(place: Place) -> str:
        (place.root / "mine").mkdir()
        home = Home(place.root / "mine")
        home.codex_config.write_text(codex)
        home.cursor_config.write_text(cursor)
        if change:
            change(home)
        return home.run("install", *words, status=status).stderr

    return said


def _has_no_agent(home: Home) -> None:
    for config in (home.codex_config, home.cursor_config):
        config.unlink()
        config.parent.rmdir()


BY_INSTALL: Mapping[str, Said] = {
    "nothing was changed: there is no terminal to ask on.": _install(status=2),
    "no coding agent was found: …": _install(change=_has_no_agent),
    "… is left as it is: it is not plain JSON …": _install("--yes", cursor="{ // mine\n}"),
    "… is left as it is: it is not valid TOML …": _install("--yes", codex="[broken\n"),
    "… registers another program as agent-channel": _install(
        "--yes", cursor='{"mcpServers": {"agent-channel": {"command": "/bin/sh"}}}'
    ),
    "the program `claude` is not on PATH": _install("--yes", "--client", "claude-code"),
}


async def _viewed(place: Place, **headers: str) -> str:
    """What the view answers to who asks for messages."""
    snapshots = Snapshots(place.channel)
    app = view_app(place.channel, Feed(place.channel, snapshots), snapshots, TOKEN, PORT)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
        return str((await client.get("/api/messages?room=hall", headers=headers)).json()["error"])


async def _from_elsewhere(place: Place) -> str:
    return await _viewed(place, host="attacker.example", **{TOKEN_HEADER: TOKEN})


async def _by_one_page_more(place: Place) -> str:
    feed = Feed(place.channel, Snapshots(place.channel))
    pages = [feed.open("hall") for _ in range(PAGES_MAX)]
    try:
        for page in pages:
            await anext(page)
        feed.open("hall")
    except TooManyPages as error:
        return str(error)
    finally:
        for page in pages:
            await page.aclose()
    return ""


async def _on_a_taken_port(place: Place) -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return place.run("view", "--port", str(taken.getsockname()[1]))


BY_THE_VIEW: Mapping[str, Said] = {
    "The token is missing or wrong: open the address that `agent-channel view` printed.": _viewed,
    "This view answers to 127.0.0.1 and localhost only, at its own port.": _from_elsewhere,
    "8 pages show this channel already: close one of them.": _by_one_page_more,
    "Port … of 127.0.0.1 can't be listened to: …": _on_a_taken_port,
}

SECTIONS: Mapping[str, Mapping[str, Said]] = {
    "`join` or `send` refuses": BY_A_TOOL,
    "The channel's file can't be used": OF_THE_FILE,
    "A command of yours refuses": BY_A_COMMAND,
    "`install` refuses": BY_INSTALL,
    "The live view refuses": BY_THE_VIEW,
}
"""By the page's headings."""
