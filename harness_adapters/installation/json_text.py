"""A JSON text changed in one place: every other character stays as it is, blanks and order included.

Only plain JSON, as the standard says: a text with comments, trailing commas or a name twice raises NotEditable.
A `path` names objects within objects from the outermost on; what is missing of it is made.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness_adapters.installation.file_client import NotEditable

INDENT_DEFAULT = "  "

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Path = Sequence[str]


class Item(NamedTuple):
    """A member of an object, or an element of an array (its `name` is ""), as places in the text."""

    name: str
    start: int
    value: int
    end: int


class Inside(NamedTuple):
    """What stands between the brackets of an object or array. `start`: after the first, `end`: at the last."""

    start: int
    end: int
    items: tuple[Item, ...]


def parse(text: str) -> dict[str, Any]:
    """What it means; nothing at all means an empty object. Raises NotEditable."""
    if not text.strip():
        return {}
    try:
        meaning = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is not plain JSON ({error})") from error
    if not isinstance(meaning, dict):
        raise NotEditable("it holds no JSON object")
    return meaning


def value_at(meaning: dict[str, Any], path: Path) -> Any:
    """None: there is nothing at that path. Raises NotEditable where something else than an object is on the way."""
    value: Any = meaning
    for name in path:
        if not isinstance(value, dict):
            raise NotEditable(f"its {'.'.join(path)} is not where it belongs")
        value = value.get(name)
        if value is None:
            return None
    return value


def with_member(text: str, path: Path, value: Any) -> str:
    """The text with the value at that path, added as the last member or put in place of the value there."""
    if not text.strip():
        text = "{}\n"
    found, at = _descend(text, path)
    if not at:
        item = found[-1]
        return text[: item.value] + _rendered(value, _indent_of(text, item.start), text) + text[item.end :]
    for name in reversed(at[1:]):
        value = {name: value}
    return _added(text, found, json.dumps(at[0], ensure_ascii=False) + ": ", value)


def with_element(text: str, path: Path, value: str) -> str:
    """The text with the value as the last of the array at that path, which is made if it is not there."""
    if value_at(parse(text), path) is None:
        return with_member(text, path, [value])
    found, _ = _descend(text, path)
    return _added(text, found, "", value)


def without_member(text: str, path: Path, original: str | None) -> str:
    """The text without that member, and without those around it that it leaves empty and that `original` lacks.

    `original`: None if nobody knows what was there before.
    """
    found, missing = _descend(text, path)
    if missing:
        return text
    text = _removed(text, _inside(text, found[-2].value).items, found[-1])
    return _without_empty(text, path[:-1], original)


def without_element(text: str, path: Path, value: str, original: str | None) -> str:
    """The text without that element of the array at that path; else as `without_member`."""
    found, missing = _descend(text, path)
    if missing:
        return text
    items = _inside(text, found[-1].value, "[").items
    item = next((each for each in items if json.loads(text[each.value : each.end]) == value), None)
    if item is None:
        return text
    return _without_empty(_removed(text, items, item), path, original)


def _without_empty(text: str, path: Path, original: str | None) -> str:
    while path and not value_at(parse(text), path) and not _holds(original, path):
        found, _ = _descend(text, path)
        text = _removed(text, _inside(text, found[-2].value).items, found[-1])
        path = path[:-1]
    return text


def _holds(text: str | None, path: Path) -> bool:
    """Whether it may: so it is if that can't be told."""
    try:
        return text is None or value_at(parse(text), path) is not None
    except NotEditable:
        return True


def _descend(text: str, path: Path) -> tuple[list[Item], Path]:
    """The items from the outermost object on as far as they are there, and the names of the path that are not."""
    start = _after_blanks(text, 0)
    found = [Item("", start, start, _value_end(text, start))]
    for depth, name in enumerate(path):
        item = next((each for each in _inside(text, found[-1].value).items if each.name == name), None)
        if item is None:
            return found, path[depth:]
        found.append(item)
    return found, ()


def _added(text: str, found: Sequence[Item], name: str, value: Any) -> str:
    """As the last in the object or array `found[-1]`, laid out as its neighbours are."""
    inside = _inside(text, found[-1].value, "{" if name else "[")
    if inside.items:
        first, last = inside.items[0], inside.items[-1]
        blanks = text[inside.start : first.start]
        glue = text[inside.items[-2].end : last.start] if len(inside.items) > 1 else f",{blanks}"
        new = glue + name + _rendered(value, blanks.rpartition("\n")[2] if "\n" in blanks else None, text)
        return text[: last.end] + new + text[last.end :]
    outer = _indent_of(text, found[-1].start) if len(found) > 1 else ""
    if outer is None:
        return text[: inside.start] + name + _rendered(value, None, text) + text[inside.end :]
    inner, newline = outer + _indent_unit(text), _newline(text)
    blanks = text[inside.start : inside.end]
    before_end = blanks if "\n" in blanks else newline + outer
    return (
        text[: inside.start] + newline + inner + name + _rendered(value, inner, text) + before_end + text[inside.end :]
    )


def _removed(text: str, items: Sequence[Item], item: Item) -> str:
    place = items.index(item)
    if place > 0:
        return text[: items[place - 1].end] + text[item.end :]
    if len(items) > 1:
        return text[: item.start] + text[items[1].start :]
    start = len(text[: item.start].rstrip(" \t\r\n"))
    return text[:start] + text[_after_blanks(text, item.end) :]


def _inside(text: str, at: int, opening: str = "{") -> Inside:
    """The items of the object (`opening` is "{") or array that begins at `at`. The text is known to be JSON."""
    if text[at] != opening:
        raise NotEditable("a setting on the way to ours is not of the kind that it should be")
    is_object, place = opening == "{", _after_blanks(text, at + 1)
    items = []
    while text[place] not in "}]":
        start = place
        name, value = "", start
        if is_object:
            name, after_name = _DECODER.raw_decode(text, start)
            value = _after_blanks(text, _after_blanks(text, after_name) + 1)
        end = _value_end(text, value)
        items.append(Item(name, start, value, end))
        place = _after_blanks(text, end)
        if text[place] == ",":
            place = _after_blanks(text, place + 1)
    return Inside(at + 1, place, tuple(items))


def _value_end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _after_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None, "it matches nothing too"
    return match.end()


def _indent_of(text: str, start: int) -> str | None:
    """The blanks in front of what starts there; None if it does not begin its line."""
    line = text[:start].rpartition("\n")[2]
    return line if not line.strip() and ("\n" in text[:start]) else None


def _indent_unit(text: str) -> str:
    """By how much the outermost object's members are indented."""
    items = _inside(text, _after_blanks(text, 0)).items
    return (_indent_of(text, items[0].start) if items else None) or INDENT_DEFAULT


def _rendered(value: Any, indent: str | None, text: str) -> str:
    """The value as JSON: its further lines begin with `indent`; None: on one line."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_indent_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _refuse(constant: str) -> None:
    raise ValueError(f"it holds {constant}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    meaning = dict(pairs)
    if len(meaning) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return meaning
