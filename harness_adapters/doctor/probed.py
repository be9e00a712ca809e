"""What a probe knows of one role, and what it says of it."""

from dataclasses import dataclass, field

from channel.delivery_states import State
from channel.inspection import Inspected
from channel.membership import Seat
from channel.names import utf16_units
from harness_adapters.doctor.finding import Finding, Level, failed
from harness_adapters.doctor.probe_message import ProbeMessage
from harness_adapters.role_status import in_words


@dataclass
class Probed:
    """A role and the message to it. `delivery`: None where it was not sent; `answer`: what came back last."""

    seat: Seat
    message: ProbeMessage
    delivery: Inspected | None = None
    answer: str | None = None
    times_ms: dict[str, int] = field(default_factory=dict)
    """After the sending: `answered`, its answer was sent; `heard`, the doctor was given it."""

    @property
    def state(self) -> State:
        return State(self.delivery.state) if self.delivery is not None else State.PENDING

    @property
    def is_answered(self) -> bool:
        return self.answer is not None and self.message.is_answered_by(self.answer)


def finding_of(probed: Probed, within_s: float) -> Finding:
    """What was proved, and what was not."""
    role = f"{probed.seat.role.name} in {probed.seat.room}"
    if probed.delivery is None:
        return failed(
            f"{role}: {in_words(probed.seat.role)}; nothing was sent, since nothing would appear now",
            "Start or resume that session; if it lives, have it join again and run the command that join returns.",
        )
    times = _times(probed, probed.delivery)
    level, proved, to_do = _judged(probed, probed.delivery, within_s)
    after = ", ".join(f"{word.replace('_', ' ')} {ms / 1_000:.2f} s" for word, ms in times)
    return Finding(level, f"{role}: {proved}. After it was sent: {after or 'nothing'}", to_do, times)


def _judged(probed: Probed, delivery: Inspected, within_s: float) -> tuple[Level, str, str]:
    text = probed.message.text
    size = f"{len(text.splitlines())} lines, {utf16_units(text):,} UTF-16 units"
    if probed.is_answered:
        return Level.PASS, f"it was woken, read all of the message ({size}) and answered; the answer came back here", ""
    if probed.answer is not None:
        return Level.WARN, "it answered, but not with both words, so it may not have read all", "Ask it what it saw."
    if probed.state is State.SEEN:
        proved = f"the message ({size}) appeared whole; no answer within {within_s:g} s, so the way back is not proved"
        return (
            Level.WARN,
            proved,
            "See what that session does: it may be busy, wait for leave to call `send`, or its model would not answer.",
        )
    detail = f" ({delivery.detail})" if delivery.detail else ""
    was = "It was dropped again; " if probed.state is State.PENDING else "It may appear yet; "
    return (
        Level.FAIL,
        f"nothing appeared within {within_s:g} s: the message is {probed.state.value}{detail}",
        f"{was}agent-channel deliveries show {delivery.delivery_id} says what happened to it.",
    )


def _times(probed: Probed, delivery: Inspected) -> tuple[tuple[str, int], ...]:
    """From its sending to the first time that it came into each state, and to the answer; the earliest first."""
    first: dict[str, int] = {}
    for event in delivery.events:
        if event.from_state is not None:
            first.setdefault(event.to_state, event.at_ms - delivery.created_at_ms)
    return tuple(sorted([*first.items(), *probed.times_ms.items()], key=lambda each: each[1]))
