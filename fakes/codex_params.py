"""Which requests the app-server can parse, and its words for those it can't.

Codex deserialises a request with serde before it looks at anything else, even before it asks whether the
connection is initialized: so these refusals come first, and none of them has an effect. Each text was seen.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jsonrpcserver import JsonRpcError

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

U32_MAX = 2**32 - 1
INPUT_FIELDS = {
    "text": ("text",),
    "image": ("url",),
    "localImage": ("path",),
    "audio": ("url",),
    "localAudio": ("path",),
    "skill": ("name", "path"),
    "mention": ("name", "path"),
}
_HEX = "0123456789abcdefABCDEF"
_GROUPS = (8, 4, 4, 4, 12)

Check = Callable[[Any], None]


def refuse(message: str, code: int = INVALID_REQUEST) -> JsonRpcError:
    """The error answer with this code and text."""
    return JsonRpcError(code, message)


def unparsable(reason: str) -> JsonRpcError:
    return refuse(f"Invalid request: {reason}")


def unknown_variant(name: str, known: tuple[str, ...]) -> JsonRpcError:
    """`known` in backquotes, as serde lists them: two with "or", more with "one of"."""
    quoted = [f"`{each}`" for each in known]
    expected = " or ".join(quoted) if len(quoted) == 2 else "one of " + ", ".join(quoted)
    return unparsable(f"unknown variant `{name}`, expected {expected}")


def string(value: Any) -> None:
    if not isinstance(value, str):
        raise wrong_type(value, "a string")


def boolean(value: Any) -> None:
    if not isinstance(value, bool):
        raise wrong_type(value, "a boolean")


def u32(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(value, "u32")
    if not 0 <= value <= U32_MAX:
        raise unparsable(f"invalid value: integer `{value}`, expected u32")


def one_of(*names: str) -> Check:
    def check(value: Any) -> None:
        string(value)
        if value not in names:
            raise unknown_variant(value, names)

    return check


def client_info(value: Any) -> None:
    check_fields(value, (Field("name", string), Field("version", string)))


def user_input(value: Any) -> None:
    """A list of tagged parts; parts other than text are looked at only as far as their required fields."""
    if not isinstance(value, list):
        raise wrong_type(value, "a sequence")
    for part in value:
        if not isinstance(part, dict):
            raise wrong_type(part, "internally tagged enum UserInput")
        if "type" not in part:
            raise unparsable("missing field `type`")
        one_of(*INPUT_FIELDS)(part["type"])
        check_fields(part, tuple(Field(name, string) for name in INPUT_FIELDS[part["type"]]))
        elements = part.get("text_elements", [])
        if not isinstance(elements, list):
            raise wrong_type(elements, "a sequence")


class Field(NamedTuple):
    """An optional one may be absent or null."""

    name: str
    check: Check
    required: bool = True


THREAD = Field("threadId", string)
INPUT = Field("input", user_input)
KEY = Field("clientUserMessageId", string)
SUBMISSION = Field("queuedSubmissionId", string)
CURSOR = Field("cursor", string, required=False)
LIMIT = Field("limit", u32, required=False)
DIRECTION = Field("sortDirection", one_of("asc", "desc"), required=False)

PARAMS: Mapping[str, tuple[Field, ...]] = {
    "initialize": (Field("clientInfo", client_info),),
    "thread/start": (
        Field("cwd", string, required=False),
        Field("historyMode", one_of("legacy", "paginated"), required=False),
    ),
    "thread/resume": (THREAD,),
    "thread/archive": (THREAD,),
    "thread/unarchive": (THREAD,),
    "thread/delete": (THREAD,),
    "thread/unsubscribe": (THREAD,),
    "thread/read": (THREAD, Field("includeTurns", boolean, required=False)),
    "thread/queue/add": (THREAD, INPUT, KEY),
    "thread/queue/list": (THREAD, CURSOR, LIMIT),
    "thread/queue/update": (THREAD, SUBMISSION, INPUT),
    "thread/queue/delete": (THREAD, SUBMISSION),
    "thread/queue/start": (THREAD,),
    "thread/items/list": (THREAD, Field("turnId", string, required=False), CURSOR, LIMIT, DIRECTION),
    "thread/turns/list": (
        THREAD,
        CURSOR,
        LIMIT,
        DIRECTION,
        Field("itemsView", one_of("notLoaded", "summary", "full"), required=False),
    ),
    "turn/start": (THREAD, Field("clientUserMessageId", string, required=False), INPUT),
    "turn/interrupt": (THREAD, Field("turnId", string)),
}


def check_params(method: str, params: Any) -> None:
    """Raises the JsonRpcError that the server answers to params it can't parse."""
    if params is None:
        raise unparsable("missing field `params`")
    check_fields(params, PARAMS[method])


def check_fields(value: Any, fields: tuple[Field, ...]) -> None:
    """Present fields in the order they were sent, then the missing ones, as serde does."""
    if not isinstance(value, dict):
        raise wrong_type(value, "a map")
    checks = {field.name: field for field in fields}
    for name, given in value.items():
        field = checks.get(name)
        if field is not None and (field.required or given is not None):
            field.check(given)
    for field in fields:
        if field.required and field.name not in value:
            raise unparsable(f"missing field `{field.name}`")


def wrong_type(value: Any, expected: str) -> JsonRpcError:
    return unparsable(f"invalid type: {_named(value)}, expected {expected}")


def _named(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{value}`"
    if isinstance(value, float):
        return f"floating point `{value}`"
    if isinstance(value, str):
        return f'string "{value}"'
    return "sequence" if isinstance(value, list) else "map"


def uuid_fault(text: str) -> str | None:
    """What the Rust uuid parser says against `text`; None if it is a UUID, in any case of letters."""
    for position, character in enumerate(text, start=1):
        if character not in _HEX and character != "-":
            return (
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-],"
                f" found `{character}` at {position}"
            )
    groups = text.split("-")
    if len(groups) == 1:
        return None if len(text) == 32 else f"invalid length: expected length 32 for simple format, found {len(text)}"
    if len(groups) != len(_GROUPS):
        return f"invalid group count: expected 5, found {len(groups)}"
    for number, (group, length) in enumerate(zip(groups, _GROUPS, strict=True)):
        if len(group) != length:
            return f"invalid group length in group {number}: expected {length}, found {len(group)}"
    return None


def is_header_value(text: str) -> bool:
    """Whether an HTTP header may carry it: no control character but tab."""
    return re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text) is None
