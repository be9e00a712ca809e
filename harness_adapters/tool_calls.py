"""The four tools: take the arguments apart, call the channel, shape the answer. No rules of its own.

Once a call has done its work no trouble of the store may turn it into an error, which says that nothing was stored:
the answer says what could not be looked up.
Arguments are checked by hand, since the SDK's own messages would show a model the text of its validator.
An answer holds no field that says nothing: a model pays for each.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio

from channel.errors import BadInput, StoreUnavailable
from channel.membership import Caller, OwnRole, Unanswered
from channel.place import default_database
from channel.presence import PERSON, RoleView
from channel.sending import Sent
from channel.wakeups import ring
from harness_adapters.callers import CLAUDE_HARNESS
from harness_adapters.claude.addresses import session_key_of
from harness_adapters.claude.launch_command import (
    how_to_run,
    how_to_run_elsewhere,
    launch_command,
    missing_program,
)
from harness_adapters.codex import addresses as codex
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel
from harness_adapters.role_status import in_words
from waiters import status
from waiters.age import age_in_words

PROBE_S_MAX = 5.0
"""How long `join` waits for the first word of a Codex thread's app-server: a child needs 0.1 s."""

Answer = dict[str, Any]

_NOT_LOOKED_UP = f"{status.STORE_UNAVAILABLE}: this call is done, but how messages reach you could not be looked up"

ROLES_SHOWN_MAX = 50
"""In one answer: a harness cuts or refuses a long one, and the command with it. A room keeps a role until it leaves."""

RECIPIENTS_MAX = 200
"""Names in one `to`; a room is a handful of agents."""


class BadArguments(BadInput):
    """The call's arguments have not the shape that the tool's schema gives."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} Nothing was done.")


class ToolCalls:
    """Answers calls; each method takes the caller and the arguments as they came."""

    def __init__(self, channel: Channel, adoption: Adoption) -> None:
        self.channel = channel
        self._adoption = adoption
        self._recognised: Caller | None = None
        """As it was at its last call: what is known of a session changes."""

    async def join(self, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
        given = _Arguments(arguments, "join", ("room", "name", "policy"))
        joined = await self.channel.membership.join(
            caller, given.text("room"), given.text("name"), given.optional_text("policy")
        )
        self._recognised = caller
        touched = {caller.address, joined.replaced.address if joined.replaced else ""}
        ring(view.bell for view in (*joined.roles, joined.replaced) if view and view.address in touched)
        roles: Sequence[RoleView] = joined.roles
        trouble = ""
        with suppress(StoreUnavailable):
            trouble = await self._serve_codex(caller, wait=True)
            roles = await self.channel.membership.roles_in(joined.role.room_id)
        shown = _shown(roles)
        answer: Answer = {
            "room": joined.role.room,
            "name": joined.role.name,
            "channel": str(self.channel.database.path),
            "registered_roles": [view.name for view in shown if _is_live(view)],
            "role_statuses": {view.name: in_words(view) for view in shown if view.role_id != joined.role.role_id},
            "more_roles": len(roles) - len(shown),
            "policy": joined.policy,
            "pending": joined.pending,
        }
        if len(joined.rooms) > 1:
            answer["rooms"] = list(joined.rooms)
        if joined.replaced is not None:
            answer["replaced"] = f"{_holder(joined.replaced)}: it lost this role to you"
            answer["unanswered"] = _unanswered(joined.unanswered, self.channel.clock.now_ms())
        answer.update(await self._waiter(caller, always=True, trouble=trouble))
        return {key: value for key, value in answer.items() if value not in ("", 0, {}, [])}

    async def send(self, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
        given = _Arguments(arguments, "send", ("text", "to", "room"))
        text, to, room = given.text("text"), given.names("to"), given.optional_text("room")
        await self._recognise(caller)
        sent = await self.channel.sending.send(caller.address, text, to, room)
        await self._adopt_for(sent.recipients)
        answer = {"id": sent.message_id, **_recipients(sent)}
        if sent.own.waiter_active and not sent.own.detail:
            return answer  # its waiter needs no word, and the streamer no competitor: it has been rung
        return {**answer, **await self._waiter(caller)}

    async def rename(self, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
        given = _Arguments(arguments, "rename", ("name", "room"))
        name, room = given.text("name"), given.optional_text("room")
        await self._recognise(caller)
        role, old = await self.channel.membership.rename(caller.address, name, room)
        return {"room": role.room, "name": role.name, "was": old, **await self._waiter(caller)}

    async def leave(self, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
        given = _Arguments(arguments, "leave", ("room",))
        room = given.optional_text("room")
        await self._recognise(caller)
        left, withdrawn = await self.channel.membership.leave(caller.address, room)
        answer: Answer = {"left": {role.room: role.name for role in left}}
        if withdrawn:
            await self._wake_rooms(left)  # the senders have a notice
            answer["withdrawn"] = withdrawn
        with suppress(StoreUnavailable):
            if await self.channel.membership.roles_of(caller.address):
                answer.update(await self._waiter(caller))
        return answer

    async def _recognise(self, caller: Caller) -> None:
        """A fresh server process of a session finds the roles that the session joined before."""
        if caller != self._recognised:
            await self.channel.membership.recognise(caller)
            self._recognised = caller
        await self._serve_codex(caller, wait=False)

    async def _serve_codex(self, caller: Caller, *, wait: bool) -> str:
        """See that a waiter of this process serves a Codex thread that holds a role; its trouble, if waited for."""
        if caller.harness != codex.HARNESS:
            return ""
        supervisor = self.channel.supervisor
        if wait or not supervisor.serves_for_good(caller.address):
            await self._adoption.serve_own(caller.address)
        if not wait:
            return ""
        with anyio.move_on_after(PROBE_S_MAX):
            return await supervisor.first_attempt(caller.address)
        return f"{status.APP_SERVER_UNAVAILABLE}: no answer yet"

    async def _adopt_for(self, recipients: Sequence[RoleView]) -> None:
        """A Codex thread whose own server is gone is served by this process."""
        if any(view.harness == codex.HARNESS for view in recipients):
            with suppress(StoreUnavailable):  # it is looked for again
                await self._adoption.adopt()

    async def _wake_rooms(self, roles: Iterable[OwnRole]) -> None:
        with suppress(StoreUnavailable):  # they look for themselves
            for role in roles:
                views = await self.channel.membership.roles_in(role.room_id)
                ring(view.bell for view in views)
                await self._adopt_for(views)

    async def _waiter(self, caller: Caller, *, always: bool = False, trouble: str = "") -> Answer:
        """Whether messages reach the caller; a deaf session learns it, and the command, from every answer."""
        try:
            active = await self.channel.leases.is_held(caller.address)
            detail = trouble or await self.channel.leases.detail(caller.address)
        except StoreUnavailable:
            return {"waiter_detail": _NOT_LOOKED_UP}
        if caller.harness == codex.HARNESS:
            answer: Answer = {"waiter": "active" if active else "offline"} if always or not active else {}
            return {**answer, "waiter_detail": detail} if detail else answer
        if active:
            return {"waiter": "active", **({"waiter_detail": detail} if detail else {})} if always else {}
        if (missing := missing_program()) is not None:
            return {"waiter": "offline", "waiter_detail": f"{status.PROGRAM_GONE}: {missing}"}
        command = launch_command(self.channel.database.path, default_database(), session_key_of(caller.address))
        answer = {"waiter": "offline", "command": command}
        if always:
            answer["how"] = how_to_run(command) if caller.harness == CLAUDE_HARNESS else how_to_run_elsewhere()
        return answer


class _Arguments:
    """A call's arguments, asked for one by one; what has the wrong shape raises BadArguments."""

    def __init__(self, arguments: Mapping[str, Any], tool: str, known: tuple[str, ...]) -> None:
        self._arguments = arguments
        self._tool = tool
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise BadArguments(f"{tool} takes {', '.join(known)}; it knows no {unknown[0][:60]!r}.")

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise BadArguments(f"{self._tool} needs {name!r}, a text.")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise BadArguments(f"{self._tool} takes a text as {name!r}, not a {type(value).__name__}.")
        return value

    def names(self, name: str) -> list[str] | None:
        value = self._arguments.get(name)
        if value is None:
            return None
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise BadArguments(f"{self._tool} takes a role's name, or a list of names, as {name!r}.")
        if not names or len(names) > RECIPIENTS_MAX:
            raise BadArguments(
                f"{self._tool} takes 1 to {RECIPIENTS_MAX} names as {name!r}; leave it out to send to all."
            )
        return names


def _recipients(sent: Sent) -> Answer:
    shown, skipped = _shown(sent.recipients), _shown(sent.skipped)
    answer: Answer = {"to": {view.name: {"state": "pending", "waiter": in_words(view, new=1)} for view in shown}}
    if len(shown) < len(sent.recipients):
        answer["more_recipients"] = len(sent.recipients) - len(shown)
    if skipped:
        answer["skipped"] = {view.name: in_words(view) for view in skipped}
    if len(skipped) < len(sent.skipped):
        answer["more_skipped"] = len(sent.skipped) - len(skipped)
    return answer


def _shown(views: Sequence[RoleView]) -> list[RoleView]:
    """Those that an answer names, the live ones first."""
    return sorted(views, key=_is_live, reverse=True)[:ROLES_SHOWN_MAX]


def _is_live(view: RoleView) -> bool:
    return view.connected or view.waiter_active


def _unanswered(messages: Iterable[Unanswered], now_ms: int) -> str:
    return ", ".join(
        f"{each.message_id} from {each.sender} ({age_in_words(now_ms - each.created_at_ms) or '<1m'})"
        for each in messages
    )


def _holder(view: RoleView) -> str:
    if view.harness == PERSON:
        return "a person"
    session = {"claude": "a Claude Code session", "codex": "a Codex thread"}.get(view.harness, "another session")
    if view.waiter_active:
        return f"{session} with an active waiter"
    return (
        f"{session}, {'connected' if view.connected else 'gone'}, offline since {status.at(view.offline_since_ms or 0)}"
    )
