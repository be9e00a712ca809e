"""The picture in the README is made of a recorded run, and a run of today prints what was recorded."""

import re
import xml.etree.ElementTree as ElementTree

from tests.demo.picture import PICTURE, RECORDED, picture, record, without_folders

BYTES_MAX = 60_000


def test_the_picture_is_what_the_script_makes_of_the_recorded_run() -> None:
    assert PICTURE.read_text() == picture(RECORDED.read_text())
    assert PICTURE.stat().st_size < BYTES_MAX


def test_each_line_of_the_run_stands_in_the_picture_as_it_was_printed() -> None:
    drawn = [text.text for text in ElementTree.fromstring(PICTURE.read_text()).iter() if text.tag.endswith("}text")]
    assert drawn == [line.strip(" ") for line in RECORDED.read_text().splitlines() if line.strip()]


def test_a_run_of_today_prints_what_was_recorded() -> None:
    assert without_times(record()) == without_times(RECORDED.read_text())


def test_no_folder_of_a_machine_is_recorded() -> None:
    said = "  /opt/here/.venv/bin/python -m x --db /var/folders/q/agent-channel-ab_1/channel/channel.db"
    assert without_folders(said, python="/opt/here/.venv/bin/python") == (
        "  ~/agent-channel/.venv/bin/python -m x --db /tmp/agent-channel-demo/channel/channel.db"
    )


def without_times(text: str) -> list[str]:
    """Less what differs from run to run: numbers, with the columns that they make wider, and how many messages one
    event of Monitor holds."""
    lines = [line for line in text.splitlines() if not line.startswith("  > ")]
    return [re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?", "N", line)) for line in lines]
