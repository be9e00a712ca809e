"""Messages that have not arrived, and those that a person has to decide about."""

import shlex
from collections.abc import AsyncIterator

from channel.delivery_states import State
from channel.inspection import Inspection, Listed
from channel.presence import PERSON
from harness_adapters.doctor.finding import Finding, passed, warned
from waiters.age import age_in_words

READ_MAX = 1_000
SHOWN_MAX = 20
"""Lines of a kind; `agent-channel deliveries` shows the rest."""


async def deliveries(inspection: Inspection, now_ms: int) -> AsyncIterator[Finding]:
    """What waits, by role, and each delivery that is uncertain."""
    pending = await inspection.find(READ_MAX, states=[State.PENDING])
    by_role: dict[tuple[str, str], list[Listed]] = {}
    for each in pending:
        by_role.setdefault((each.room, each.recipient), []).append(each)
    for (room, role), waiting in list(by_role.items())[:SHOWN_MAX]:
        oldest = waiting[-1]
        age = age_in_words(now_ms - oldest.created_at_ms) or "less than a minute"
        why = f" ({oldest.detail})" if oldest.detail else ""
        if oldest.harness == PERSON:
            yield passed(f"not read yet: {_count(len(waiting))} to {role} in {room}, a person, the oldest since {age}")
            continue
        yield warned(
            f"pending: {_count(len(waiting))} to {role} in {room}, the oldest since {age}{why}",
            "They are given when that session can be given them: see its line above, or "
            f"`agent-channel deliveries --state pending --role {shlex.quote(role)}`.",
        )
    if not pending:
        yield passed("no message waits")
    troubled = await inspection.find(READ_MAX, states=[State.UNCERTAIN, State.CONFLICT])
    for each in troubled[:SHOWN_MAX]:
        yield warned(
            f"{each.state}: message {each.message_id} to {each.recipient} in {each.room}: {each.detail or 'no answer'}",
            f"agent-channel deliveries look {each.delivery_id}, then resend or drop it.",
        )
    if len(troubled) > SHOWN_MAX:
        yield warned(f"and {len(troubled) - SHOWN_MAX} more of those", "agent-channel deliveries --state uncertain")
    if not troubled:
        yield passed("no message is uncertain")


def _count(number: int) -> str:
    if number == READ_MAX:
        return f"{READ_MAX:,} messages or more"
    return "1 message" if number == 1 else f"{number:,} messages"
