"""Deliveries that a Claude Code session was shown, read from its transcript.

The transcript is the vendor's own file, one JSON record a line (seen in Claude Code 2.1.310 to 2.1.332).
An event of Monitor stands in it as `<task-notification>` with its text in entities: first in a
`queue-operation` record, when it is queued; then in a `user` record or, in the middle of a turn, in an
`attachment` of type `queued_command`, when it is put before the model. Only the latter two count. The
same text also stands in `api-request-blob` records, which mean nothing here.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from harness_adapters.claude.framing import WholeDelivery, is_body_line, parse_header, whole_deliveries

RECORD_BYTES_MAX = 1_000_000
"""A longer record is passed over: it holds an image or a file. One with an event of Monitor, thrice in it,
stays under a tenth of this."""

_NOTIFICATION = b"<task-notification>"
_FIELD = r"\n<[a-z-]+>[^<]*</[a-z-]+>"
_EVENT = re.compile(rf"<task-notification>\n<task-id>([^<]*)</task-id>(?:{_FIELD})*?\n<event>([^<]*)</event>")


class TranscriptUnreadable(Exception):
    """Nothing can be said about what the session was shown: the file is not there, or not to be read."""


def find_deliveries(
    transcript: Path, offset: int, message_ids: Collection[int], *, queued: bool = False
) -> list[WholeDelivery]:
    """Each writing of these messages that stands whole, with every part, after `offset` bytes.

    With `queued`, what Claude Code has put in its queue of events, shown since or not.

    A message may be found more than once (it was repeated). Whoever asks compares the hash of `text` with
    that of what was written. Reads line by line; keeps only what it looks for.

    Raises:
        TranscriptUnreadable: as opposed to an empty answer, which says that they are not there.
    """
    lines_of_task: dict[str, list[str]] = {}
    wanted: dict[str, bool] = {}
    for task_id, text in _events(transcript, offset, _queued_texts if queued else _shown_texts):
        # One Monitor's events go on where its last one ended; another's may stand between them.
        for line in text.split("\n"):
            header = parse_header(line)
            if header is not None or not is_body_line(line):
                wanted[task_id] = header is not None and header.message_id in message_ids
            if wanted.get(task_id):
                lines_of_task.setdefault(task_id, []).append(line)
    return [whole for lines in lines_of_task.values() for whole in whole_deliveries(lines)]


def was_passed_on(transcript: Path, offset: int, line: str) -> bool:
    """Whether an event with this line stands there after `offset` bytes, in the session's queue or shown.

    Raises:
        TranscriptUnreadable
    """
    return any(
        line in text.split("\n")
        for texts_of in (_queued_texts, _shown_texts)
        for _, text in _events(transcript, offset, texts_of)
    )


def _events(transcript: Path, offset: int, texts_of: Callable[[Any], list[str]]) -> Iterator[tuple[str, str]]:
    """Task id and text of each event in the records that `texts_of` knows, in the order of the file."""
    for line in _lines(transcript, offset):
        if _NOTIFICATION not in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for text in texts_of(record):
            for event in _EVENT.finditer(text):
                yield event[1], _without_entities(event[2])


def _lines(transcript: Path, offset: int) -> Iterator[bytes]:
    """Whole lines from `offset` on; from the start where the file is shorter, since it is another one then."""
    try:
        with transcript.open("rb") as file:
            file.seek(offset if offset <= transcript.stat().st_size else 0)
            whole = True
            while line := file.readline(RECORD_BYTES_MAX):
                ended = line.endswith(b"\n")
                if whole and ended:
                    yield line
                whole = ended
    except OSError as error:
        raise TranscriptUnreadable(f"no transcript to read at {transcript}: {error.strerror}") from error


def _shown_texts(record: Any) -> list[str]:
    """The texts of a record that puts something before the model."""
    match record:
        case {"type": "user", "message": {"content": str(text)}}:
            return [text]
        case {"type": "user", "message": {"content": [*blocks]}}:
            return [block["text"] for block in blocks if _is_text(block)]
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": str(text)}}:
            return [text]
    return []


def _queued_texts(record: Any) -> list[str]:
    """The text of a record that puts something into the queue of events."""
    match record:
        case {"type": "queue-operation", "operation": "enqueue", "content": str(text)}:
            return [text]
    return []


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _without_entities(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
