"""How long a message waited, in a word, and such a word from a person."""

import re

_AGE = re.compile(r"([0-9]{1,6})([mhd])")
_MINUTES = {"d": 24 * 60, "h": 60, "m": 1}


def age_in_words(age_ms: int) -> str:
    """`40m`, `15h`, `3d`: the largest whole unit; empty below a minute, which says nothing."""
    minutes = age_ms // 60_000
    for unit, minutes_in_unit in _MINUTES.items():
        if minutes >= minutes_in_unit:
            return f"{minutes // minutes_in_unit}{unit}"
    return ""


def age_from_words(words: str) -> int:
    """The milliseconds of `40m`, `15h` or `3d`. Raises ValueError."""
    found = _AGE.fullmatch(words)
    if found is None:
        raise ValueError(f"{words!r} is no age: write 40m, 15h or 3d")
    return int(found[1]) * _MINUTES[found[2]] * 60_000
