"""A long text in pages small enough for the result of one tool call: `agent-channel message ID --page K`."""

from dataclasses import dataclass

PAGE_CHARACTERS_MAX = 20_000
"""Claude Code shows 30,000 characters of a command's output and moves the rest to a file."""

_LINE_END_SEARCH = 2_000
"""Characters that a page is shortened by, at most, to end with a line."""


@dataclass(frozen=True)
class Page:
    """A slice of a text; the slices of all pages joined are the text."""

    text: str
    number: int
    count: int


def paginate(text: str, number: int) -> Page:
    """Page `number` of `text`, counted from 1; an empty text is one empty page.

    Raises:
        ValueError: there is no such page.
    """
    pages = _slices(text)
    if not 1 <= number <= len(pages):
        raise ValueError(f"there is no page {number}: the text has {len(pages)}; ask for one from 1")
    return Page(pages[number - 1], number, len(pages))


def _slices(text: str) -> list[str]:
    slices = []
    start = 0
    while len(text) - start > PAGE_CHARACTERS_MAX:
        end = start + PAGE_CHARACTERS_MAX
        line_end = text.rfind("\n", end - _LINE_END_SEARCH, end)
        end = end if line_end == -1 else line_end + 1
        slices.append(text[start:end])
        start = end
    return [*slices, text[start:]]
