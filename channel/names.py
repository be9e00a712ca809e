"""Which room and role names, texts and policies the channel takes.

A name stands in the first line of a delivery, beside `key=value` fields and inside a harness's own
markup, so it holds no whitespace, no control, format or bidi character, and none of `<>&=`.
"""

import re
import unicodedata

from channel.errors import BadName, BadPolicy, BadText

NAME_UNITS_MAX = 200
"""UTF-16 units; two names and a message id must fit one 500-unit line of Monitor with room to spare."""

TEXT_CHARACTERS_MAX = 1_000_000
"""Characters; Codex takes 1,048,576 with the envelope (measured with 0.148.0 to 0.171.0)."""

POLICY_CHARACTERS_MAX = 2_000

SYSTEM_NAME = "agent-channel"
"""The sender of the channel's own notices; no role can take it."""

_FORBIDDEN_CATEGORIES = {
    "Cc": "a control character",
    "Cf": "an invisible format character",
    "Cs": "half of a surrogate pair",
    "Co": "a private-use character",
    "Cn": "an unassigned character",
    "Zs": "a blank",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}
_FORBIDDEN_CHARACTERS = "<>&="
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters, accents and a symbol that show nothing: two names that differ only in these look the same."""


def check_name(name: str, what: str) -> str:
    """Return the name as it is stored (NFC), `what` being "room" or "role".

    Raises BadName.
    """
    name = normalized(name)
    if not name:
        raise BadName(what, name, "it is empty")
    if utf16_units(name) > NAME_UNITS_MAX:
        raise BadName(what, name, f"it is longer than {NAME_UNITS_MAX} characters")
    for character in name:
        found = _FORBIDDEN_CATEGORIES.get(unicodedata.category(character))
        if found:
            raise BadName(what, name, f"it holds {found} (U+{ord(character):04X})")
        if _INVISIBLE.match(character):
            raise BadName(what, name, f"it holds an invisible character (U+{ord(character):04X})")
        if character in _FORBIDDEN_CHARACTERS:
            raise BadName(what, name, f"it holds {character!r}; none of {_FORBIDDEN_CHARACTERS} may stand in a name")
    if name.startswith("-"):
        raise BadName(what, name, "it begins with '-', as an option of a command does")
    if what == "role" and _looks_like_the_channel(name):
        raise BadName(what, name, "it is the sender of the channel's own notices")
    return name


def normalized(name: str) -> str:
    """A room or role name as it is stored: NFC, so that one name has one spelling."""
    return unicodedata.normalize("NFC", name)


def _looks_like_the_channel(name: str) -> bool:
    """In capitals, in wide letters, with another dash."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join("-" if unicodedata.category(each) == "Pd" else each for each in plain) == SYSTEM_NAME


def check_text(text: str) -> str:
    """Return the text unchanged if every receiver can be given it exactly.

    Raises BadText: a lone surrogate can be written neither as UTF-8 nor as a JSON line that the Codex
    app-server parses (it drops such a line without an answer: measured with 0.171.0).
    """
    if not text:
        raise BadText("it is empty", "Send at least one character.")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise BadText(
            f"it has {len(text):,} characters, and at most {TEXT_CHARACTERS_MAX:,} are taken",
            "Write it to a file and send the path, or send it in parts.",
        )
    surrogate = _lone_surrogate(text)
    if surrogate is not None:
        raise BadText(
            f"character {surrogate} is half of a surrogate pair (U+{ord(text[surrogate]):04X}), "
            "which no receiver can be given exactly",
            "Remove or replace it.",
        )
    return text


def check_policy(policy: str) -> str:
    """Return the policy unchanged. Raises BadPolicy."""
    if len(policy) > POLICY_CHARACTERS_MAX:
        raise BadPolicy(f"it has {len(policy):,} characters, and at most {POLICY_CHARACTERS_MAX:,} are taken")
    if _lone_surrogate(policy) is not None:
        raise BadPolicy("it holds half of a surrogate pair")
    return policy


def utf16_units(text: str) -> int:
    """The length as JavaScript counts it: one for each character, two above U+FFFF."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def _lone_surrogate(text: str) -> int | None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return None
