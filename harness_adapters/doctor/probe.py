"""A real message through the real wake path of joined roles, and their answers back.

The doctor joins the room under a name of its own, as a session of a harness that nobody knows does: it calls the same
tools, and hears through the same streamer. At the end it leaves, and what was not handed over is dropped.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from channel.decisions import Decisions
from channel.delivery_states import State
from channel.errors import ChannelError, DecisionRefused, NotPossible
from channel.inspection import Inspection
from channel.membership import Caller, Seat
from harness_adapters.callers import OTHER_HARNESS
from harness_adapters.claude.addresses import keyed_address
from harness_adapters.codex.adoption import Adoption
from harness_adapters.composition import Channel, open_channel
from harness_adapters.doctor.finding import Finding
from harness_adapters.doctor.listening import listening
from harness_adapters.doctor.probe_message import probe_message
from harness_adapters.doctor.probed import Probed, finding_of
from harness_adapters.role_status import ACTIVE, state_of
from harness_adapters.tool_calls import ToolCalls

LOOK_S = 0.1
"""Between two looks at what became of the messages."""

LISTENING_S_MAX = 30.0
"""For the doctor's own streamer to start: 0.2 s on a quiet machine."""

SEEN_AFTER_ANSWER_S = 15.0
"""An answer proves that the text was read; the look that records it as seen comes 1, 2, 5 or 10 s after."""

LEAVE_S_MAX = 5.0

ID_CHARACTERS = 8
"""Of a doctor's name: no two probe at the same time under one."""

_DOCTOR = re.compile(rf"doctor-[0-9a-f]{{{ID_CHARACTERS}}}")

OnProgress = Callable[[str], None]
"""Called with how it stands with each role that has not answered yet; "" at the end."""


class CantProbe(ChannelError):
    """There is nobody to send to, or no way to hear; nothing was sent."""


async def probe(
    database: Path, roles: Sequence[str], room: str | None, within_s: float, on_progress: OnProgress
) -> list[Finding]:
    """A finding for each role, soon after all have answered, or `within_s` after the sending.

    Raises CantProbe, StoreUnavailable.
    """
    async with open_channel(database, durable=True, create=False) as channel:
        held = await channel.membership.seats()
        seats = _chosen(held, roles, room)
        await _leave_for_killed(channel, held)
        probing = _Probing(channel, seats)
        try:
            return await probing.run(within_s, on_progress)
        finally:
            on_progress("")
            with anyio.move_on_after(LEAVE_S_MAX, shield=True):
                await probing.leave()


def _chosen(seats: Sequence[Seat], roles: Sequence[str], room: str | None) -> list[Seat]:
    """The seats of these roles, all in one room. Raises CantProbe."""
    by_room: dict[str, dict[str, Seat]] = {}
    for seat in seats:
        by_room.setdefault(seat.room, {})[seat.role.name] = seat
    fitting = [each for each, held in by_room.items() if room in (None, each) and set(roles) <= set(held)]
    named = " and ".join(map(repr, roles))
    if not fitting:
        present = ", ".join(sorted(f"{seat.role.name} in {seat.room}" for seat in seats)) or "none"
        lacking = "No room has" if room is None else f"The room {room!r} has not"
        raise CantProbe(f"{lacking} {named}. The roles that are held: {present}.")
    if len(fitting) > 1:
        raise CantProbe(f"Several rooms have {named} ({', '.join(sorted(fitting))}): name one with --room.")
    return [by_room[fitting[0]][name] for name in dict.fromkeys(roles)]


async def _leave_for_killed(channel: Channel, held: Sequence[Seat]) -> None:
    """A doctor that was killed could not leave, and each message to all would wait for it for a week."""
    for seat in held:
        if _DOCTOR.fullmatch(seat.role.name) and seat.role.harness == OTHER_HARNESS and not seat.role.connected:
            with suppress(NotPossible):  # another doctor did just the same
                await channel.membership.leave(seat.role.address, seat.room)


class _Probing:
    """One run: joins, listens, sends, looks, and leaves."""

    def __init__(self, channel: Channel, seats: Sequence[Seat]) -> None:
        self._channel = channel
        self._room = seats[0].room
        self._name = f"doctor-{channel.ids.new_id()[:ID_CHARACTERS]}"
        self._probed = [Probed(seat, probe_message(self._name, self._room, channel.ids)) for seat in seats]
        process = channel.process.to_text()
        self._caller = Caller(keyed_address(process), OTHER_HARNESS, process, process)
        adoption = Adoption(channel.membership, channel.deliveries, channel.supervisor, channel.clock)
        self._calls = ToolCalls(channel, adoption)
        self._inspection = Inspection(channel.database, channel.clock)

    async def run(self, within_s: float, on_progress: OnProgress) -> list[Finding]:
        joined = await self._calls.join(self._caller, {"room": self._room, "name": self._name})
        async with listening(joined["command"], self._hear):
            await self._until_listening()
            for each in self._probed:
                await self._send(each)
            with anyio.move_on_after(within_s):
                await self._until_answered(on_progress)
        return [finding_of(each, within_s) for each in self._probed]

    async def leave(self) -> None:
        """Nothing stays behind: what still waits is dropped, and the role given up."""
        decisions = Decisions(self._channel.database, self._channel.clock)
        for each in self._probed:
            if each.delivery is not None and each.state is State.PENDING:
                with suppress(DecisionRefused):  # it was handed over in this moment
                    await decisions.drop(each.delivery.delivery_id)
        with suppress(NotPossible):  # it was stopped before it had joined
            await self._calls.leave(self._caller, {})

    async def _until_listening(self) -> None:
        with anyio.move_on_after(LISTENING_S_MAX):
            while not await self._channel.leases.is_held(self._caller.address):
                await self._channel.clock.sleep(LOOK_S)
            return
        raise CantProbe(f"The doctor's own streamer did not start within {LISTENING_S_MAX:g} s, so nothing was sent.")

    async def _send(self, probed: Probed) -> None:
        """Only to who would be woken: to anybody else it would come later, when nobody waits for the answer."""
        role = probed.seat.role
        if state_of(role) == ACTIVE:
            sent = await self._calls.send(self._caller, {"text": probed.message.text, "to": role.name})
            delivery_id = await self._inspection.delivery_id(f"{sent['id']}@{role.name}")
            probed.delivery = await self._inspection.show(delivery_id)

    async def _until_answered(self, on_progress: OnProgress) -> None:
        """Return once each message that was sent is answered, and recorded as seen or late for that."""
        while True:
            for each in self._probed:
                if each.delivery is not None:
                    each.delivery = await self._inspection.show(each.delivery.delivery_id)
            left = [each for each in self._probed if not self._is_done(each)]
            if not left:
                return
            on_progress(", ".join(f"{each.seat.role.name}: {each.state.value}" for each in left))
            await self._channel.clock.sleep(LOOK_S)

    def _is_done(self, probed: Probed) -> bool:
        if probed.delivery is None:
            return True
        if not probed.is_answered:
            return False
        since_ms = self._channel.clock.now_ms() - probed.delivery.created_at_ms - probed.times_ms["heard"]
        return probed.state is State.SEEN or since_ms > SEEN_AFTER_ANSWER_S * 1_000

    async def _hear(self, message_id: int, sender: str, text: str) -> None:
        for each in self._probed:
            if each.delivery is not None and each.seat.role.name == sender and not each.is_answered:
                sent_at_ms = each.delivery.created_at_ms
                answer = await self._channel.deliveries.message(message_id)
                each.answer = text
                each.times_ms = {
                    "answered": answer.created_at_ms - sent_at_ms,
                    "heard": self._channel.clock.now_ms() - sent_at_ms,
                }
