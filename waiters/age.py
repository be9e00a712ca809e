"""How long a message waited, in a word."""


def age_in_words(age_ms: int) -> str:
    """`40m`, `15h`, `3d`: the largest whole unit; empty below a minute, which says nothing."""
    minutes = age_ms // 60_000
    for minutes_in_unit, unit in ((24 * 60, "d"), (60, "h"), (1, "m")):
        if minutes >= minutes_in_unit:
            return f"{minutes // minutes_in_unit}{unit}"
    return ""
