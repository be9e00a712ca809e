"""Who holds which role: join, rename, leave, take-over, and a session that goes on in another process."""

from dataclasses import replace

import pytest

from channel.delivery_states import Event, Policy
from channel.errors import AlreadyJoined, BadName, BadPolicy, NameTaken, NotJoined, RoleLost, RoomNotNamed, UnknownRole
from tests.unit.world import Channel, World, claude, codex

ANN, BOB, CARL = claude("ann"), claude("bob"), claude("carl")


async def texts(channel: Channel, address: str) -> list[str]:
    return [each.message.text for each in await channel.deliveries.next_pending(address)]


async def test_a_join_answers_the_room_its_roles_and_the_channel(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    joined = await channel.join(BOB, "worker")

    assert (joined.role.room, joined.role.name, joined.replaced) == ("hall", "worker", None)
    assert [view.name for view in joined.roles] == ["boss", "worker"]
    assert joined.rooms == ("hall",)
    assert joined.channel_id == await channel.membership.channel_id() == "0000000000000001"


async def test_the_same_join_again_changes_nothing(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    first = await channel.join(BOB, "worker")
    await channel.send("ann", "worker")

    again = await channel.join(BOB, "worker")

    assert again.role == first.role
    assert again.pending == 1
    assert again.replaced is None


async def test_a_second_name_in_one_room_is_an_error_that_names_rename(channel: Channel) -> None:
    """Sub-agents share the server of their session."""
    await channel.join(ANN, "boss")

    with pytest.raises(AlreadyJoined, match=r"'boss' in the room 'hall' already.*call rename\(name, room\)"):
        await channel.join(ANN, "helper")
    assert [role.name for role in await channel.membership.roles_of("ann")] == ["boss"]


async def test_a_bad_name_or_policy_stores_nothing(channel: Channel) -> None:
    with pytest.raises(BadName):
        await channel.join(ANN, "two words")
    with pytest.raises(BadPolicy):
        await channel.membership.join(ANN, "hall", "boss", "p" * 2_001)

    assert await channel.membership.channel_id() is None
    assert await channel.membership.connection("ann") is None


async def test_a_policy_is_kept_until_another_or_an_empty_one_is_given(channel: Channel) -> None:
    async def policy(text: str | None) -> str:
        return (await channel.membership.join(ANN, "hall", "boss", text)).policy

    assert await policy("be brief") == "be brief"
    assert await policy(None) == "be brief"
    assert await policy("") == ""
    assert await policy(None) == ""


@pytest.mark.fault("F36")
async def test_a_second_session_that_joins_under_a_name_takes_the_role_and_what_waits_for_it(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    lost = (await channel.join(BOB, "worker")).role
    await channel.send("ann", "worker", "one")
    await channel.send("ann", "worker", "two")

    joined = await channel.join(CARL, "worker")

    assert joined.replaced is not None
    assert (joined.replaced.role_id, joined.replaced.address) == (lost.role_id, "bob")
    assert joined.pending == 2
    assert joined.role.role_id > lost.role_id
    assert await texts(channel, "carl") == ["one", "two"]
    (notice,) = await texts(channel, "bob")
    assert "Do not join under this name again unless your user asks" in notice


@pytest.mark.fault("F35")
@pytest.mark.fault("F36")
async def test_who_lost_a_role_can_not_send_rename_or_leave_with_it(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.join(CARL, "worker")

    with pytest.raises(RoleLost, match="holds that role now"):
        await channel.send("bob", "boss")
    with pytest.raises(RoleLost):
        await channel.membership.rename("bob", "other", "hall")
    with pytest.raises(RoleLost):
        await channel.membership.leave("bob", "hall")
    assert await channel.membership.roles_of("bob") == []
    assert await texts(channel, "ann") == []


@pytest.mark.fault("F36")
async def test_a_new_message_goes_to_the_new_holder_only(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.join(CARL, "worker")

    await channel.send("ann", "worker", "for the new one")
    await channel.send("ann", None, "for all")

    assert await texts(channel, "carl") == ["for the new one", "for all"]
    assert "for" not in " ".join(await texts(channel, "bob")).split()


async def test_a_session_that_is_gone_gets_no_notice_of_its_loss(world: World, channel: Channel) -> None:
    await channel.join(BOB, "worker")
    world.dead.add(BOB.process)

    await channel.join(CARL, "worker")

    assert await texts(channel, "bob") == []


@pytest.mark.fault("F36")
async def test_a_delivery_that_the_old_session_refuses_after_the_take_over_follows_to_the_new_one(
    channel: Channel,
) -> None:
    thread, other = codex("thread"), codex("other")
    await channel.join(ANN, "boss")
    await channel.join(thread, "worker")
    await channel.send("ann", "worker", "in the middle")
    lease = await channel.leases.take("thread", "p", "")
    delivery = await channel.hand_over(lease)
    await channel.join(CARL, "worker")
    await channel.join(other, "worker")

    assert await channel.record(delivery, Event.REFUSED_WITHOUT_EFFECT, "queue full") == "pending"

    assert await texts(channel, "other") == ["in the middle"]
    assert "in the middle" not in await texts(channel, "thread") + await texts(channel, "carl")


@pytest.mark.fault("F36")
async def test_a_notice_of_the_loss_that_must_wait_again_does_not_follow_to_the_new_holder(channel: Channel) -> None:
    await channel.join(codex("thread"), "worker")
    await channel.join(CARL, "worker")
    lease = await channel.leases.take("thread", "p", "")
    delivery = await channel.hand_over(lease)

    assert await channel.record(delivery, Event.NOT_WRITTEN) == "pending"

    assert len(await texts(channel, "thread")) == 1
    assert await texts(channel, "carl") == []


async def test_a_delivery_that_must_wait_again_after_its_recipient_left_is_withdrawn_and_the_sender_is_told(
    channel: Channel,
) -> None:
    await channel.join(ANN, "boss")
    await channel.join(codex("thread"), "worker")
    sent = await channel.send("ann", "worker")
    lease = await channel.leases.take("thread", "p", "")
    delivery = await channel.hand_over(lease)
    await channel.membership.leave("thread", None)

    assert await channel.record(delivery, Event.REFUSED_WITHOUT_EFFECT) == "withdrawn"

    assert (await channel.history(delivery))[-2:] == [
        ("refused_without_effect", "pending"),
        ("recipient_left", "withdrawn"),
    ]
    assert await texts(channel, "ann") == [f"worker left the room before it was given your message {sent.message_id}."]


@pytest.mark.fault("F37")
async def test_a_rename_carries_five_pending_along_and_the_old_name_points_to_the_new(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    for number in range(5):
        await channel.send("ann", "worker", str(number))

    role, old = await channel.membership.rename("bob", "builder", None)

    assert (role.name, old) == ("builder", "worker")
    assert await texts(channel, "bob") == ["0", "1", "2", "3", "4"]
    with pytest.raises(UnknownRole, match="'worker' is called 'builder' now: send to that name") as refused:
        await channel.send("ann", "worker")
    assert refused.value.now_called == "builder"
    await channel.send("ann", "builder", "5")
    assert await texts(channel, "bob") == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.fault("F37")
async def test_an_old_name_that_somebody_holds_again_is_that_role(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.membership.rename("bob", "builder", None)
    await channel.join(CARL, "worker")

    await channel.send("ann", "worker", "for carl")
    assert await texts(channel, "carl") == ["for carl"]

    await channel.membership.leave("carl", None)
    with pytest.raises(UnknownRole) as refused:
        await channel.send("ann", "worker")
    assert refused.value.now_called is None


async def test_a_name_that_is_held_can_not_be_taken_by_a_rename(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")

    with pytest.raises(NameTaken, match="'boss' is taken"):
        await channel.membership.rename("bob", "boss", None)
    assert (await channel.membership.rename("bob", "worker", None))[1] == "worker"


async def test_leaving_withdraws_what_waits_and_tells_each_sender_once(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.join(CARL, "helper")
    ids = [(await channel.send(sender, "worker")).message_id for sender in ("ann", "carl", "ann")]

    ended, withdrawn = await channel.membership.leave("bob", "hall")

    assert ([role.name for role in ended], withdrawn) == (["worker"], 3)
    states = await channel.states()
    assert [states[number] for number in ids] == ["withdrawn"] * 3
    assert await texts(channel, "ann") == [
        f"worker left the room before it was given your messages {ids[0]}, {ids[2]}."
    ]
    assert await texts(channel, "carl") == [f"worker left the room before it was given your message {ids[1]}."]
    assert await texts(channel, "bob") == []


async def test_a_later_join_under_the_name_of_one_that_left_starts_empty(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.send("ann", "worker")
    await channel.membership.leave("bob", None)

    joined = await channel.join(CARL, "worker")

    assert (joined.pending, joined.replaced) == (0, None)


async def test_what_was_handed_over_before_the_recipient_left_is_still_looked_for(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(codex("thread"), "worker")
    await channel.send("ann", "worker")
    lease = await channel.leases.take("thread", "p", "")
    delivery = await channel.hand_over(lease)
    await channel.record(delivery, Event.ANSWERED)

    await channel.membership.leave("thread", None)

    assert [each.delivery_id for each in await channel.open_at(lease)] == [delivery]


async def test_the_room_must_be_named_where_there_are_several_and_only_there(channel: Channel) -> None:
    with pytest.raises(NotJoined, match=r"joined no room. Call join\(room, name\) first"):
        await channel.send("ann", "worker")

    await channel.join(ANN, "boss", "hall")
    await channel.join(BOB, "worker", "hall")
    await channel.send("ann", "worker")

    await channel.join(ANN, "boss", "yard")
    with pytest.raises(RoomNotNamed, match=r"several rooms \(yard, hall\)"):
        await channel.send("ann", "worker")
    with pytest.raises(NotJoined, match="no role in the room 'attic'; it has joined yard, hall"):
        await channel.membership.leave("ann", "attic")
    await channel.sending.send("ann", "hello", ["worker"], "hall")

    assert len((await channel.membership.leave("ann", None))[0]) == 2
    with pytest.raises(NotJoined):
        await channel.membership.leave("ann", None)


async def test_a_room_may_be_named_in_another_spelling_of_the_same_name(channel: Channel) -> None:
    await channel.join(ANN, "boss", "caf\u00e9")
    await channel.join(BOB, "zo\u00eb", "caf\u00e9")

    await channel.sending.send("ann", "hello", ["zoe\u0308"], "cafe\u0301")

    assert await texts(channel, "bob") == ["hello"]


async def test_a_fresh_server_of_a_known_session_finds_its_roles_again(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")

    assert await channel.membership.recognise(replace(BOB, server="bob-server-2"))
    await channel.send("bob", "boss")

    row = await channel.membership.connection("bob")
    assert row is not None and row["server"] == "bob-server-2"


async def test_a_session_that_never_joined_is_not_stored(channel: Channel) -> None:
    assert not await channel.membership.recognise(ANN)
    assert await channel.membership.connection("ann") is None


class TestASessionThatGoesOnInAnotherProcess:
    """Claude Code's `--resume`: a new process with the session id of a dead one."""

    BEFORE = claude("bob-1", session_id="s")
    AFTER = claude("bob-2", session_id="s")

    @pytest.fixture
    async def joined(self, channel: Channel) -> Channel:
        await channel.join(ANN, "boss")
        await channel.join(self.BEFORE, "worker")
        await channel.send("ann", "worker", "one")
        return channel

    async def test_it_inherits_the_roles_of_the_dead_one_with_what_waits(self, world: World, joined: Channel) -> None:
        world.dead.add(self.BEFORE.process)

        assert await joined.membership.recognise(self.AFTER)

        assert await texts(joined, "bob-2") == ["one"]
        assert await joined.membership.roles_of("bob-1") == []
        sent = await joined.send("bob-2", "boss")
        assert sent.sender.name == "worker"

    async def test_joining_again_under_the_same_name_is_the_same_role(self, world: World, joined: Channel) -> None:
        world.dead.add(self.BEFORE.process)

        again = await joined.join(self.AFTER, "worker")

        assert (again.pending, again.replaced) == (1, None)

    @pytest.mark.parametrize("known", [True, False], ids=["it lives", "it can't be judged"])
    async def test_nothing_is_inherited_from_a_process_that_may_live(
        self, world: World, joined: Channel, known: bool
    ) -> None:
        if not known:
            world.unknown.add(self.BEFORE.process)

        assert not await joined.membership.recognise(self.AFTER)
        assert await texts(joined, "bob-1") == ["one"]

    async def test_nothing_is_inherited_from_another_session(self, world: World, joined: Channel) -> None:
        world.dead.add(self.BEFORE.process)

        assert not await joined.membership.recognise(claude("carl", session_id="t"))

    async def test_what_the_dead_one_was_shown_is_still_looked_for(self, world: World, joined: Channel) -> None:
        lease = await joined.leases.take("bob-1", "streamer-1", "")
        delivery = await joined.hand_over(lease, Policy.MONITOR)
        world.dead |= {self.BEFORE.process, "streamer-1"}
        await joined.membership.recognise(self.AFTER)

        new = await joined.leases.take("bob-2", "streamer-2", "")
        (found,) = await joined.open_at(new, Policy.MONITOR)

        assert (found.delivery_id, found.of_former_term, found.role_is_replaced) == (delivery, True, False)

    @pytest.mark.parametrize("ended_by", ["left", "taken_over"])
    async def test_what_the_dead_one_was_shown_is_looked_for_though_nobody_of_the_session_holds_the_role(
        self, world: World, joined: Channel, ended_by: str
    ) -> None:
        """A role that was left, or that a Codex thread took over, which can read no transcript."""
        lease = await joined.leases.take("bob-1", "streamer-1", "")
        delivery = await joined.hand_over(lease, Policy.MONITOR)
        if ended_by == "left":
            await joined.membership.leave("bob-1", None)
        else:
            await joined.join(codex("thread"), (await joined.membership.roles_of("bob-1"))[0].name)
        world.dead |= {self.BEFORE.process, "streamer-1"}
        await joined.membership.recognise(self.AFTER)

        new = await joined.leases.take("bob-2", "streamer-2", "")
        (found,) = await joined.open_at(new, Policy.MONITOR)

        assert (found.delivery_id, found.role_is_replaced) == (delivery, ended_by == "taken_over")


async def test_the_seats_are_all_held_roles_with_what_stands_behind_each(channel: Channel) -> None:
    await channel.join(ANN, "boss")
    await channel.join(BOB, "worker")
    await channel.join(ANN, "guest", room="attic")
    await channel.membership.leave("bob", None)
    await channel.join(codex("thread"), "coder")
    await channel.sending.send("ann", "x", ["coder"], "hall")
    held = await channel.leases.take("ann", "streamer", "")

    seats = {(seat.room, seat.role.name): seat for seat in await channel.membership.seats()}

    assert set(seats) == {("attic", "guest"), ("hall", "boss"), ("hall", "coder")}
    boss, coder = seats["hall", "boss"], seats["hall", "coder"]
    assert (boss.process, boss.waiter, boss.role.waiter_active) == ("ann-claude", "streamer", True)
    assert (coder.thread_id, coder.codex_home, coder.waiter, coder.role.waiting) == ("thread", "/h", None, 1)

    await channel.leases.release(held)
    assert {seat.waiter for seat in await channel.membership.seats()} == {None}
