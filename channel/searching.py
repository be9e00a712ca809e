"""Messages of a room whose text holds certain words, found by reading through it a page at a time.

No index: a second copy of every text would be dearer than a person's search, which reads 80,000 messages a second.
"""

from collections.abc import Callable, Sequence

from channel.conversation import Conversation, Said
from channel.messages import ID_MAX
from channel.names import TEXT_CHARACTERS_MAX

READ_AT_ONCE = 200
"""Messages; a text may have a million characters."""


OnRead = Callable[[int], None]
"""Takes how many messages were read so far."""


async def newest_with(
    conversation: Conversation, room: str, words: Sequence[str], limit: int, on_read: OnRead = lambda _count: None
) -> list[Said]:
    """The newest messages that hold all `words`, in capitals or not; oldest first."""
    found: list[Said] = []
    read = 0
    before_id = ID_MAX
    while page := await conversation.page(room, READ_AT_ONCE, TEXT_CHARACTERS_MAX, before_id):
        read += len(page)
        on_read(read)
        found += [said for said in reversed(page) if holds(said, words)]
        if len(found) >= limit:
            break
        before_id = page[0].message_id
    return found[:limit][::-1]


async def first_with(
    conversation: Conversation,
    room: str,
    words: Sequence[str],
    after_id: int,
    limit: int,
    on_read: OnRead = lambda _count: None,
) -> list[Said]:
    """The first messages after one that hold all `words`; oldest first."""
    found: list[Said] = []
    read = 0
    while page := await conversation.after(room, after_id, READ_AT_ONCE, TEXT_CHARACTERS_MAX):
        read += len(page)
        on_read(read)
        found += [said for said in page if holds(said, words)]
        if len(found) >= limit:
            break
        after_id = page[-1].message_id
    return found[:limit]


def holds(said: Said, words: Sequence[str]) -> bool:
    text = said.text_begins.casefold()
    return all(word.casefold() in text for word in words)
