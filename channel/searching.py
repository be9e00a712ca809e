"""Messages of a room whose text holds certain words, found by reading through it a page at a time.

No index: a second copy of every text would be dearer than a person's search, which reads 100,000 messages a second.
"""

from collections.abc import Sequence

from channel.conversation import MESSAGE_ID_END, Conversation, Said
from channel.names import TEXT_CHARACTERS_MAX

READ_AT_ONCE = 200
"""Messages; a text may have a million characters."""


async def newest_with(conversation: Conversation, room: str, words: Sequence[str], limit: int) -> list[Said]:
    """The newest messages that hold all `words`, in capitals or not; oldest first."""
    found: list[Said] = []
    before_id = MESSAGE_ID_END
    while page := await conversation.page(room, READ_AT_ONCE, TEXT_CHARACTERS_MAX, before_id):
        found += [said for said in reversed(page) if holds(said, words)]
        if len(found) >= limit:
            break
        before_id = page[0].message_id
    return found[:limit][::-1]


async def first_with(
    conversation: Conversation, room: str, words: Sequence[str], after_id: int, limit: int
) -> list[Said]:
    """The first messages after one that hold all `words`; oldest first."""
    found: list[Said] = []
    while page := await conversation.after(room, after_id, READ_AT_ONCE, TEXT_CHARACTERS_MAX):
        found += [said for said in page if holds(said, words)]
        if len(found) >= limit:
            break
        after_id = page[-1].message_id
    return found[:limit]


def holds(said: Said, words: Sequence[str]) -> bool:
    text = said.text_begins.casefold()
    return all(word.casefold() in text for word in words)
