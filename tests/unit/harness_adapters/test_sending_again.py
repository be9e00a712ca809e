"""What is sent again is said to be, whatever the store does after it."""

from pathlib import Path
from typing import NoReturn

import pytest

from channel.delivery_states import Event, Policy
from channel.errors import StoreBusy
from channel.inspection import Inspection
from channel.membership import Caller
from channel.messages import HandOver, Outcome
from harness_adapters.composition import open_channel
from harness_adapters.sending_again import send_again


@pytest.mark.fault("F39")
async def test_a_store_that_fails_once_it_is_sent_does_not_deny_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with open_channel(tmp_path / "there" / "channel.db", durable=False) as channel:
        process = channel.process.to_text()
        await channel.membership.join(Caller("one", "claude", process, process), "hall", "planner", None)
        await channel.membership.join(Caller("two", "codex", process, process, thread_id="two"), "hall", "worker", None)
        await channel.sending.send("one", "do it", ["worker"], None)
        lease = await channel.leases.take("two", process, "")
        (pending,) = await channel.deliveries.next_pending("two")
        hand_over = HandOver(pending.delivery_id, "0" * 64)
        await channel.deliveries.record_hand_over(lease, Policy.QUEUE, [hand_over])
        await channel.deliveries.record([Outcome(pending.delivery_id, Event.ANSWER_LOST, "no answer")])
        uncertain = await Inspection(channel.database, channel.clock).show(pending.delivery_id)

        async def refuse(_address: str) -> NoReturn:
            raise StoreBusy

        monkeypatch.setattr(channel.leases, "bell", refuse)
        sent, _ = await send_again(channel, uncertain, force=True)

        rows = await channel.database.read("SELECT message_id FROM messages ORDER BY message_id")
        assert [row["message_id"] for row in rows] == [pending.message.message_id, sent.message_id]
