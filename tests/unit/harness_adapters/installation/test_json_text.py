"""A JSON text changed in one place, whatever it looks like around it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.installation.file_client import NotEditable
from harness_adapters.installation.json_text import parse, with_element, with_member, without_element, without_member

NAMES = st.text(max_size=5) | st.sampled_from(["mcpServers", "docs", '"}', "{", "\\", "😀"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES.filter(lambda name: name != "ours"), VALUES, max_size=4)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])
ENTRY = {"command": "/bin/x", "args": ["a", "b"]}


def laid_out(value: Any, indent: Any, newline: str) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)


def is_insertion(before: str, after: str) -> bool:
    """Whether `after` is `before` with something put in at one place."""
    kept = next((i for i, (left, right) in enumerate(zip(before, after, strict=False)) if left != right), len(before))
    return after.endswith(before[kept:])


@given(OBJECTS, OBJECTS, LAYOUTS, st.sampled_from(["\n", "\r\n"]))
def test_a_member_is_put_in_at_one_place_and_taken_out_of_it(
    outer: dict[str, Any], servers: dict[str, Any], indent: Any, newline: str
) -> None:
    meaning = {**outer, "servers": servers}
    text = laid_out(meaning, indent, newline)
    changed = with_member(text, ("servers", "ours"), ENTRY)
    assert json.loads(changed) == {**meaning, "servers": {**servers, "ours": ENTRY}}
    assert list(json.loads(changed)) == list(meaning), "nothing changed its place"
    assert is_insertion(text, changed)
    assert without_member(changed, ("servers", "ours"), text) == text


@given(OBJECTS, LAYOUTS)
def test_what_encloses_it_is_made_and_goes_with_it(outer: dict[str, Any], indent: Any) -> None:
    outer.pop("a", None)
    text = laid_out(outer, indent, "\n")
    changed = with_member(text, ("a", "b", "ours"), ENTRY)
    assert json.loads(changed) == {**outer, "a": {"b": {"ours": ENTRY}}}
    assert without_member(changed, ("a", "b", "ours"), text) == text


@given(OBJECTS, st.lists(st.text(max_size=5).filter(lambda text: text != "ours"), max_size=4), LAYOUTS)
def test_an_element_is_put_at_the_end_of_an_array_and_taken_out_of_it(
    outer: dict[str, Any], elements: list[str], indent: Any
) -> None:
    meaning = {**outer, "allow": elements}
    text = laid_out(meaning, indent, "\n")
    changed = with_element(text, ("allow",), "ours")
    assert json.loads(changed) == {**outer, "allow": [*elements, "ours"]}
    assert is_insertion(text, changed)
    assert without_element(changed, ("allow",), "ours", text) == text


@given(OBJECTS, LAYOUTS, st.integers(0, 3))
def test_a_member_is_taken_out_wherever_it_stands(others: dict[str, Any], indent: Any, place: int) -> None:
    members = list(others.items())
    members.insert(min(place, len(members)), ("ours", ENTRY))
    left = without_member(laid_out(dict(members), indent, "\n"), ("ours",), "")
    assert json.loads(left) == others


@given(OBJECTS, LAYOUTS)
def test_a_value_is_replaced_in_its_place(others: dict[str, Any], indent: Any) -> None:
    text = laid_out({"ours": {"command": "old", "mine": 1}, **others}, indent, "\n")
    changed = with_member(text, ("ours", "command"), "new")
    assert changed == text.replace('"old"', '"new"', 1)


def test_what_encloses_it_stays_if_it_was_there_before() -> None:
    before = '{"servers": {}}'
    changed = with_member(before, ("servers", "ours"), 1)
    assert without_member(changed.replace("{", '{"later": 2, ', 1), ("servers", "ours"), before) == (
        '{"later": 2, "servers": {}}'
    )
    assert json.loads(without_member(changed, ("servers", "ours"), "{}")) == {}


@pytest.mark.parametrize(
    "text",
    [
        "{} // mine",
        "/* mine */ {}",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[]",
        "1",
        "{",
        "\ufeff{}",
    ],
)
def test_anything_but_plain_json_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        parse(text)


@pytest.mark.parametrize("text", ['{"a": []}', '{"a": "b"}', '{"a": {"b": []}}'])
def test_what_stands_where_an_object_should_be_is_not_overwritten(text: str) -> None:
    with pytest.raises(NotEditable):
        with_member(text, ("a", "b", "ours"), 1)
