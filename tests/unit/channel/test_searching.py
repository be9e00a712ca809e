"""A room's messages from a point on, and those that hold certain words."""

from collections.abc import Sequence

import pytest

from channel import searching
from channel.conversation import Conversation, Said
from channel.errors import UnknownRoom
from channel.searching import first_with, newest_with
from tests.unit.world import Channel, claude

ALL = 100
TEXT = 1_000

TEXTS = ["Begin with the parser.", "Ärger im PARSER", "parse, er no", "done\nwith the\tparser", "ärger"]


@pytest.fixture
async def conversation(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    """Messages 1 to 5 in the hall, a minute apart; 6 in another room. A search reads two at a time."""
    monkeypatch.setattr(searching, "READ_AT_ONCE", 2)
    for room in ("hall", "cellar"):
        await channel.join(claude("ann"), "boss", room)
        await channel.join(claude("bob"), "worker", room)
    for text in TEXTS:
        await channel.sending.send("ann", text, ["worker"], "hall")
        channel.clock.advance(60)
    await channel.sending.send("ann", "parser", ["worker"], "cellar")
    return Conversation(channel.database)


def ids(found: Sequence[Said]) -> list[int]:
    return [said.message_id for said in found]


async def test_what_came_after_a_message_is_read_oldest_first_with_its_deliveries(conversation: Conversation) -> None:
    found = await conversation.after("hall", 2, 2, TEXT)
    assert ids(found) == [3, 4]
    assert [(said.sender, said.deliveries[0].recipient, said.deliveries[0].state) for said in found] == [
        ("boss", "worker", "pending")
    ] * 2
    assert ids(await conversation.after("hall", 5, ALL, TEXT)) == []
    assert ids(await conversation.after("attic", 0, ALL, TEXT)) == []


async def test_a_time_is_found_as_the_message_before_it(channel: Channel, conversation: Conversation) -> None:
    now_ms = channel.clock.now_ms()
    assert await conversation.last_before(now_ms - 150_000) == 3
    assert await conversation.last_before(now_ms - 180_000) == 2, "sent in that very millisecond: not before it"
    assert await conversation.last_before(0) == 0


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["parser"], [1, 2, 4]),
        (["PARSER", "with"], [1, 4]),
        (["ÄRGER"], [2, 5]),
        (["%"], []),
        (["the\tparser"], [4]),
        (["nowhere"], []),
    ],
)
async def test_all_words_must_be_there_in_capitals_or_not(
    conversation: Conversation, words: list[str], found: list[int]
) -> None:
    assert ids(await newest_with(conversation, "hall", words, ALL)) == found
    assert ids(await first_with(conversation, "hall", words, 0, ALL)) == found


async def test_a_search_gives_the_newest_or_from_a_message_on_the_first(conversation: Conversation) -> None:
    assert ids(await newest_with(conversation, "hall", ["parser"], 2)) == [2, 4]
    assert ids(await first_with(conversation, "hall", ["parser"], 0, 2)) == [1, 2]
    assert ids(await first_with(conversation, "hall", ["parser"], 1, 2)) == [2, 4]


async def test_a_search_tells_how_many_it_has_read_and_reads_no_more_than_it_must(conversation: Conversation) -> None:
    read: list[int] = []
    await newest_with(conversation, "hall", ["parser"], 1, read.append)
    await first_with(conversation, "hall", ["nowhere"], 0, 1, read.append)

    assert read == [2, 2, 4, 5]


async def test_a_room_that_is_not_there_is_an_error_with_those_that_are(
    channel: Channel, conversation: Conversation
) -> None:
    assert await conversation.room_id("hall") == 1
    with pytest.raises(UnknownRoom, match="The rooms there are: cellar, hall"):
        await conversation.room_id("attic")
