"""The picture in the README: what `make demo` prints, as a terminal shows it.

python -m tests.demo.picture            docs/demo.svg, of the run that is recorded
python -m tests.demo.picture --record   run the demo with the fake Codex and record it before that
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("recorded.txt")
PICTURE = ROOT / "docs" / "demo.svg"

COLUMN, LINE, MARGIN = 7.2, 17, 16
"""In pixels, at a font size of 12."""

COLOURS = (
    (r"\$ ", "#7ee787"),
    (r"  > ", "#a5d6ff"),
    (r"  id  ", "#8b949e"),
    (r"Every message arrived", "#7ee787"),
    (r"NOT all", "#ff7b72"),
)
"""By how a line begins; the others have the colour of the text."""


def record() -> str:
    """What `make demo` prints where no codex is on PATH, without the folders of this machine."""
    command = [sys.executable, "-m", "tests.demo"]
    environment = {"HOME": str(Path.home()), "PATH": os.defpath}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return "$ make demo\n" + without_folders(done.stdout)


def without_folders(text: str, python: str = sys.executable) -> str:
    """As if the checkout and its environment, with `python`, were in the home folder."""
    text = text.replace(python, "~/agent-channel/.venv/bin/python")
    return re.sub(r"/\S*/agent-channel-\w+/channel", "/tmp/agent-channel-demo/channel", text)


def picture(text: str) -> str:
    """The text as an SVG; every line has its place and its width, whatever the font."""
    lines = text.rstrip("\n").split("\n")
    width = round(max(map(len, lines)) * COLUMN + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    drawn = "".join(_line(line, MARGIN + (number + 1) * LINE - 5) for number, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        "<title>What make demo prints</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" fill="#e6edf3">\n'
        f"{drawn}</g>\n</svg>\n"
    )


def _line(line: str, y: int) -> str:
    words = line.strip(" ")
    x = MARGIN + (len(line) - len(line.lstrip(" "))) * COLUMN
    colour = next((f' fill="{colour}"' for begins, colour in COLOURS if re.match(begins, line)), "")
    place = f'x="{x:.1f}" y="{y}" textLength="{len(words) * COLUMN:.1f}"'
    return f'<text {place} xml:space="preserve"{colour}>{escape(words)}</text>\n'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.demo.picture", description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="run the demo first, and record it")
    if parser.parse_args().record:
        RECORDED.write_text(record())
    PICTURE.write_text(picture(RECORDED.read_text()))


if __name__ == "__main__":
    main()
