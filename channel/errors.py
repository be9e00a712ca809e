"""Every error that the channel raises, as one tree.

    ChannelError
    ├── BadInput                  the caller's words are off; nothing was stored
    │   ├── BadName
    │   ├── BadText
    │   └── BadPolicy
    ├── NotPossible               the words are right, but the state of the room forbids it
    │   ├── NotJoined
    │   ├── RoomNotNamed
    │   ├── AlreadyJoined
    │   ├── NameTaken
    │   ├── UnknownRole
    │   ├── NobodyElse
    │   ├── SentToSelf
    │   ├── UnknownRoom
    │   ├── HeldByAnother
    │   ├── UnknownMessage
    │   ├── UnknownDelivery
    │   ├── DecisionRefused
    │   └── RoleLost
    ├── LeaseHeld                 a living process is the waiter of the address already
    ├── LeaseLost                 another process is the waiter of the address now
    ├── IllegalTransition         a state and an event that no table joins: a fault of ours
    └── StoreUnavailable          the file can't be used now
        ├── NoStore               nobody has joined yet
        ├── StoreBusy             try again
        ├── StoreFull             free some space
        ├── StoreReadOnly         the account may not write it
        ├── SchemaTooNew          restart the session, or upgrade
        ├── StoreMoved            join again, or move it back
        ├── StoreBroken           the file is no channel
        └── UnsafePlace           the place is not ours to write in

Each message says what is wrong, why, and what to do; it is shown to agents and to people as it is.
"""

from collections.abc import Sequence


class ChannelError(Exception):
    """Anything the channel refuses."""


class BadInput(ChannelError):
    """The caller's words are off; nothing was stored."""


class BadName(BadInput):
    def __init__(self, what: str, name: str, why: str) -> None:
        super().__init__(f"The {what} name {name[:60]!r} can't be used: {why}. Choose another name.")


class BadText(BadInput):
    def __init__(self, why: str, what_to_do: str) -> None:
        super().__init__(f"The text can't be sent: {why}. {what_to_do} Nothing was sent.")


class BadPolicy(BadInput):
    def __init__(self, why: str) -> None:
        super().__init__(f"The policy can't be stored: {why}. Shorten or correct it and join again.")


class NotPossible(ChannelError):
    """The words are right, but the state of the room forbids it; nothing was stored."""


class NotJoined(NotPossible):
    def __init__(self, rooms: Sequence[str] = (), room: str | None = None) -> None:
        if room is None:
            super().__init__("This session has joined no room. Call join(room, name) first.")
        else:
            super().__init__(
                f"This session has no role in the room {room!r}"
                + (f"; it has joined {_listed(rooms)}" if rooms else "")
                + f". Name a joined room, or call join({room!r}, name) first."
            )


class RoomNotNamed(NotPossible):
    def __init__(self, rooms: Sequence[str]) -> None:
        super().__init__(
            f"This session has joined several rooms ({_listed(rooms)}), so which one is meant is not clear. "
            "Give the room as well."
        )


class AlreadyJoined(NotPossible):
    def __init__(self, room: str, name: str) -> None:
        super().__init__(
            f"This session is {name!r} in the room {room!r} already, and holds one role a room (its sub-agents "
            "share it). To change the name, call rename(name, room)."
        )


class NameTaken(NotPossible):
    def __init__(self, room: str, name: str) -> None:
        super().__init__(f"The name {name!r} is taken in the room {room!r}. Choose another name.")


class UnknownRole(NotPossible):
    def __init__(self, room: str, name: str, roles: Sequence[str], now_called: str | None = None) -> None:
        self.roles = tuple(roles)
        self.now_called = now_called
        there = f"The roles there are: {_listed(roles)}." if roles else "No other role has joined it."
        renamed = f" {name!r} is called {now_called!r} now: send to that name." if now_called else ""
        super().__init__(f"The room {room!r} has no role {name!r}.{renamed} {there} Nothing was sent.")


class NobodyElse(NotPossible):
    def __init__(self, room: str, skipped: Sequence[str] = ()) -> None:
        why = (
            f"the only other roles ({_listed(skipped)}) have been offline for over 7 days; "
            "name one in `to` to send to it all the same"
            if skipped
            else "no other role has joined it; ask your user to bring in the other agent"
        )
        super().__init__(f"Nobody would get a message to all in the room {room!r}: {why}. Nothing was sent.")


class SentToSelf(NotPossible):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is this session's own role. Name another role. Nothing was sent.")


class UnknownRoom(NotPossible):
    def __init__(self, room: str, rooms: Sequence[str]) -> None:
        there = f"The rooms there are: {_listed(rooms)}." if rooms else "No session has joined one yet."
        super().__init__(f"There is no room {room[:60]!r} in this channel. {there}")


class HeldByAnother(NotPossible):
    """A person's command never takes a role over: an agent that loses its role gets no more messages."""

    def __init__(self, room: str, name: str) -> None:
        super().__init__(
            f"The role {name!r} in the room {room!r} is another session's, and a person does not take it over. "
            "Give another name with --as. Nothing was sent."
        )


class UnknownMessage(NotPossible):
    def __init__(self, message_id: int) -> None:
        super().__init__(f"There is no message {message_id} in this channel. Check the number and the database.")


class UnknownDelivery(NotPossible):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no delivery {name[:60]!r} in this channel. Give the id that `agent-channel deliveries` shows "
            "first, or MESSAGE@ROLE."
        )


class DecisionRefused(NotPossible):
    """A person's decision on a delivery is not taken; `may_be_forced`: it may be taken all the same."""

    def __init__(self, delivery_id: int, state: str, decision: str, why: str, *, may_be_forced: bool = False) -> None:
        self.may_be_forced = may_be_forced
        super().__init__(f"Delivery {delivery_id} is {state} and was not {decision}: {why}.")


class RoleLost(NotPossible):
    """Another session joined under this session's name; it stays lost until the user asks."""

    def __init__(self, room: str, name: str) -> None:
        super().__init__(
            f"Another session has joined the room {room!r} as {name!r} and holds that role now. "
            "Do not join under this name again unless your user asks; another name is free to use."
        )


class LeaseHeld(ChannelError):
    """A living process is the waiter of the address already; whoever gets this serves it not, or waits."""

    def __init__(self, process: str) -> None:
        self.process = process
        super().__init__("Another process serves this session's deliveries already.")


class LeaseLost(ChannelError):
    """Another process is the waiter of the address now; whoever gets this stops handing over."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__("Another process serves this session's deliveries now, so this one stops.")


class IllegalTransition(ChannelError):
    """A state and an event that the policy's table does not join: a fault of ours, never of a user."""

    def __init__(self, policy: str, state: str, event: str) -> None:
        super().__init__(f"A {policy} delivery that is {state} can't take the event {event}.")


class StoreUnavailable(ChannelError):
    """The database can't be used now; nothing was stored."""


class StoreBusy(StoreUnavailable):
    def __init__(self) -> None:
        super().__init__("The channel's database is locked by another process. Nothing was stored; try again.")


class NoStore(StoreUnavailable):
    def __init__(self, path: str) -> None:
        super().__init__(f"There is no channel at {path}: no session has joined one yet, or --db names another file.")


class StoreFull(StoreUnavailable):
    def __init__(self, path: str) -> None:
        super().__init__(f"The disk that holds {path} is full. Nothing was stored; free some space and try again.")


class StoreReadOnly(StoreUnavailable):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} can't be written: it, its folder or its file system is read-only here. Nothing was stored; "
            "make it writable, or name another file with --db."
        )


class SchemaTooNew(StoreUnavailable):
    def __init__(self, found: int, known: int) -> None:
        self.found = found
        super().__init__(
            f"agent-channel was upgraded: the database has schema {found}, and this process knows {known}. "
            "Restart this session (with the newer agent-channel); nothing was written."
        )


class StoreMoved(StoreUnavailable):
    """Its place holds another file now, or none: what is written to this one is read by nobody who comes later."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was moved away, removed or replaced while this process had it open. Nothing was stored. "
            "Move it back, or join again to use the channel that is there now."
        )


class StoreBroken(StoreUnavailable):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} can't be used as a channel: {why}. The file was left as it is. "
            "Move it away, or name another file with --db."
        )


class UnsafePlace(StoreUnavailable):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} is not safe for a channel: {why}. Name another file with --db.")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
