"""Rooms, roles and the sessions that hold them: join, rename, leave, take-over.

A role row is one registration of a name in a room, so its id is the role's term: a session that lost
its role to another can do nothing with the row that it still has.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from channel.clock import Clock, IdSource
from channel.database import Database, Row, Transaction
from channel.delivery_states import State
from channel.errors import AlreadyJoined, HeldByAnother, NameTaken, NotJoined, RoleLost, RoomNotNamed
from channel.names import check_name, check_policy, normalized
from channel.presence import Presence, RoleView
from channel.queries import sql
from channel.withdrawals import notify, settle_given_before, withdraw_pending

UNANSWERED_MAX = 20
"""Told to who takes a role over; older ones are history."""

MAY_HAVE_BEEN_READ = (State.HANDED_OVER, State.ACCEPTED, State.SEEN, State.UNCERTAIN)


@dataclass(frozen=True)
class Caller:
    """The harness session that a tool call comes from.

    `address`: the session's key. `process`: identity of the harness's process; `server`: of the server
    process that speaks for it. The `codex_*` fields say where and with which binary a Codex thread runs.
    """

    address: str
    harness: str
    process: str
    server: str
    session_id: str | None = None
    thread_id: str | None = None
    codex_home: str | None = None
    codex_sqlite_home: str | None = None
    codex_path: str | None = None
    codex_version: str | None = None
    runs_exec: bool = False


class OwnRole(NamedTuple):
    """A role that the caller holds."""

    role_id: int
    room_id: int
    room: str
    name: str


class Seat(NamedTuple):
    """A held role of any room, with what stands behind it.

    `process`: identity of the harness's process, `server`: of the server that spoke for it last. `waiter`: of the
    newest holder of its lease; None: there was none, or it gave the lease back.
    """

    room: str
    role: RoleView
    process: str
    server: str
    thread_id: str | None
    codex_home: str | None
    waiter: str | None


class Unanswered(NamedTuple):
    """A message that the session before was given, and whose sender heard nothing from it since."""

    message_id: int
    sender: str
    created_at_ms: int


class Joined(NamedTuple):
    """The answer to a join. `replaced`: the holder that was ended; `roles`: all that are in the room now.

    `unanswered`: what that holder was given and left without an answer, the oldest first.
    """

    role: OwnRole
    channel_id: str
    policy: str
    pending: int
    rooms: tuple[str, ...]
    roles: tuple[RoleView, ...]
    replaced: RoleView | None
    unanswered: tuple[Unanswered, ...]


class Membership:
    """Who holds which role."""

    def __init__(self, database: Database, clock: Clock, ids: IdSource, presence: Presence) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._presence = presence

    async def recognise(self, caller: Caller) -> bool:
        """Store what the newest server process of a known session says of it; True if it has roles.

        A new Claude process that runs a dead one's session inherits its roles. A session that never
        joined, and inherits nothing, is not stored.
        """
        async with self._database.transaction("recognise") as transaction:
            known = await transaction.one(sql("connection_by_address"), {"address": caller.address})
            dead = await self._dead_connections(transaction, caller)
            if known is None and not dead:
                return False
            await self._put_connection(transaction, caller, dead)
            return bool(await _own_roles(transaction, caller.address))

    async def join(self, caller: Caller, room: str, name: str, policy: str | None, *, take_over: bool = True) -> Joined:
        """Hold the role `name` in `room`; the same call again changes nothing but the policy.

        Raises BadName, BadPolicy, AlreadyJoined (under another name), HeldByAnother (unless `take_over`).
        """
        room, name = check_name(room, "room"), check_name(name, "role")
        if policy is not None:
            check_policy(policy)
        async with self._database.transaction("join") as transaction:
            now_ms = self._clock.now_ms()
            channel_id = await self._channel_id(transaction)
            await transaction.run(sql("make_room"), {"room": room, "now_ms": now_ms})
            room_row = await transaction.one(sql("room_by_name"), {"room": room})
            assert room_row is not None
            room_id = room_row["room_id"]
            if policy is not None:
                await transaction.run(sql("set_policy"), {"room_id": room_id, "policy": policy})
            dead = await self._dead_connections(transaction, caller)
            connection_id = await self._put_connection(transaction, caller, dead)
            role, replaced = await self._hold(transaction, caller, connection_id, room_id, room, name, take_over)
            pending = await transaction.one(sql("count_pending"), {"role_id": role.role_id})
            return Joined(
                role=role,
                channel_id=channel_id,
                policy=room_row["policy"] if policy is None else policy,
                pending=pending[0] if pending else 0,
                rooms=tuple(own.room for own in await _own_roles(transaction, caller.address)),
                roles=tuple(await self._views(transaction, room_id)),
                replaced=replaced,
                unanswered=tuple(await _unanswered(transaction, role.role_id)) if replaced else (),
            )

    async def rename(self, address: str, name: str, room: str | None) -> tuple[OwnRole, str]:
        """Give the caller's role another name; what waits for it follows. The role and its old name.

        Raises BadName, NotJoined, RoomNotNamed, RoleLost, NameTaken.
        """
        name = check_name(name, "role")
        async with self._database.transaction("rename") as transaction:
            own = await own_role(transaction, address, room)
            if own.name == name:
                return own, name
            if any(view.name == name for view in await self._views(transaction, own.room_id)):
                raise NameTaken(own.room, name)
            await transaction.run(sql("rename_role"), {"role_id": own.role_id, "name": name})
            await transaction.run(
                sql("remember_former_name"), {"room_id": own.room_id, "name": own.name, "role_id": own.role_id}
            )
            await transaction.run(sql("forget_former_name"), {"room_id": own.room_id, "name": name})
            return OwnRole(own.role_id, own.room_id, own.room, name), own.name

    async def leave(self, address: str, room: str | None) -> tuple[list[OwnRole], int]:
        """End the caller's role in a room, or in all; the roles ended, and how many messages were withdrawn.

        Each sender of a withdrawn message gets a notice. Raises NotJoined, RoleLost.
        """
        async with self._database.transaction("leave") as transaction:
            ending = (
                [await own_role(transaction, address, room)]
                if room is not None
                else await _own_roles(transaction, address)
            )
            if not ending:
                raise NotJoined
            withdrawn = 0
            for own in ending:
                await self._end_role(transaction, own.role_id, "left")
                withdrawn += await withdraw_pending(
                    transaction, own.room_id, own.role_id, own.name, self._clock.now_ms()
                )
            return ending, withdrawn

    async def roles_of(self, address: str) -> list[OwnRole]:
        """The roles that a session holds."""
        rows = await self._database.read(sql("own_roles"), {"address": address})
        return [_own_role(row) for row in rows if row["ended_by"] is None]

    async def roles_in(self, room_id: int) -> list[RoleView]:
        """The roles held in a room, as they are at this moment."""
        rows = await self._database.read(sql("room_roles"), {"room_id": room_id})
        return [self._presence.view(row) for row in rows]

    async def seats(self) -> list[Seat]:
        """Every role that is held, by room, as it is at this moment."""
        rows = await self._database.read(sql("seats"))
        return [
            Seat(
                row["room"],
                self._presence.view(row),
                row["process"],
                row["server"],
                row["thread_id"],
                row["codex_home"],
                row["waiter_process"] if row["released_at_ms"] is None else None,
            )
            for row in rows
        ]

    async def channel_id(self) -> str | None:
        """The channel's id, part of every key; None before the first join."""
        row = await self._database.read_one(sql("channel_id"))
        return row["id"] if row else None

    async def connection(self, address: str) -> Row | None:
        """What is stored of a session."""
        return await self._database.read_one(sql("connection_by_address"), {"address": address})

    async def _hold(
        self,
        transaction: Transaction,
        caller: Caller,
        connection_id: int,
        room_id: int,
        room: str,
        name: str,
        take_over: bool,
    ) -> tuple[OwnRole, RoleView | None]:
        for own in await _own_roles(transaction, caller.address):
            if own.room_id == room_id:
                if own.name != name:
                    raise AlreadyJoined(room, own.name)
                return own, None
        holder = next((view for view in await self._views(transaction, room_id) if view.name == name), None)
        if holder is not None:
            if not take_over:
                raise HeldByAnother(room, name)
            await self._end_role(transaction, holder.role_id, "taken_over")
        added = await transaction.one(
            sql("add_role"),
            {"room_id": room_id, "name": name, "connection_id": connection_id, "now_ms": self._clock.now_ms()},
        )
        assert added is not None
        role = OwnRole(added["role_id"], room_id, room, name)
        await transaction.run(sql("forget_former_name"), {"room_id": room_id, "name": name})
        if holder is not None:
            heir = {"role_id": holder.role_id, "new_role_id": role.role_id}
            await transaction.run(sql("name_heir"), heir)
            await transaction.run(sql("move_pending"), heir)
            await settle_given_before(transaction, role.role_id, self._clock.now_ms())
            if holder.connected:
                await notify(transaction, room_id, holder.role_id, str(RoleLost(room, name)), self._clock.now_ms())
        return role, holder

    async def _end_role(self, transaction: Transaction, role_id: int, ended_by: str) -> None:
        await transaction.run(
            sql("end_role"), {"role_id": role_id, "ended_by": ended_by, "now_ms": self._clock.now_ms()}
        )

    async def _views(self, transaction: Transaction, room_id: int) -> list[RoleView]:
        return [self._presence.view(row) for row in await transaction.all(sql("room_roles"), {"room_id": room_id})]

    async def _channel_id(self, transaction: Transaction) -> str:
        await transaction.run(sql("make_channel"), {"id": self._ids.new_id(), "now_ms": self._clock.now_ms()})
        row = await transaction.one(sql("channel_id"))
        assert row is not None
        return str(row["id"])

    async def _dead_connections(self, transaction: Transaction, caller: Caller) -> list[int]:
        if caller.session_id is None:
            return []
        rows = await transaction.all(
            sql("connections_of_session"), {"session_id": caller.session_id, "address": caller.address}
        )
        return [row["connection_id"] for row in rows if self._presence.is_alive(row["process"]) is False]

    async def _put_connection(self, transaction: Transaction, caller: Caller, dead: Sequence[int]) -> int:
        row = await transaction.one(
            sql("put_connection"),
            {
                "address": caller.address,
                "harness": caller.harness,
                "process": caller.process,
                "server": caller.server,
                "session_id": caller.session_id,
                "thread_id": caller.thread_id,
                "codex_home": caller.codex_home,
                "codex_sqlite_home": caller.codex_sqlite_home,
                "codex_path": caller.codex_path,
                "codex_version": caller.codex_version,
                "runs_exec": int(caller.runs_exec),
                "now_ms": self._clock.now_ms(),
            },
        )
        assert row is not None
        connection_id = int(row["connection_id"])
        for dead_id in dead:
            await transaction.run(sql("inherit_roles"), {"connection_id": connection_id, "dead_id": dead_id})
        return connection_id


async def own_role(transaction: Transaction, address: str, room: str | None) -> OwnRole:
    """The role that a session means: that in `room`, or its only one.

    Raises NotJoined, RoomNotNamed, RoleLost (another session joined under its name).
    """
    room = normalized(room) if room is not None else None
    rows = await transaction.all(sql("own_roles"), {"address": address})
    held = [_own_role(row) for row in rows if row["ended_by"] is None]
    wanted = held if room is None else [own for own in held if own.room == room]
    if len(wanted) == 1:
        return wanted[0]
    if len(wanted) > 1:
        raise RoomNotNamed([own.room for own in wanted])
    last = next((row for row in rows if room in (None, row["room"])), None)
    if last is not None and last["ended_by"] == "taken_over":
        raise RoleLost(last["room"], last["name"])
    raise NotJoined([own.room for own in held], room)


async def _unanswered(transaction: Transaction, role_id: int) -> list[Unanswered]:
    """Of what the registrations were given that this one took over."""
    rows = await transaction.all(
        sql("unanswered"),
        {
            "role_id": role_id,
            "given_states": json.dumps([state.value for state in MAY_HAVE_BEEN_READ]),
            "states": json.dumps([state.value for state in State]),
            "limit": UNANSWERED_MAX,
        },
    )
    return [Unanswered(*row) for row in reversed(rows)]


async def _own_roles(transaction: Transaction, address: str) -> list[OwnRole]:
    rows = await transaction.all(sql("own_roles"), {"address": address})
    return [_own_role(row) for row in rows if row["ended_by"] is None]


def _own_role(row: Row) -> OwnRole:
    return OwnRole(row["role_id"], row["room_id"], row["room"], row["name"])
