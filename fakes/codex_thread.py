"""The owner of a Codex thread: the one process that has it loaded and turns queued rows into turns.

A test holds the owner itself and moves it step by step; the steps are those that the real Codex shows:

    with ThreadOwner(home, thread_id) as owner:
        owner.take_row()        # the row has left the queue, no item yet: "in neither place"
        owner.record_item()     # now the key is among the items
        owner.complete()        # the turn is over, the next row may be taken
        owner.run_row()         # all three

Other states of a thread are the lack of one: never loaded, or loaded by nobody any more. `interrupt` pauses
the queue as the user's Esc does; `block` is a UserPromptSubmit hook that refuses (the item never appears);
`end_exec` is how `codex exec` ends (it consumes a row that its model never sees).

As a process of its own, for demos and for tests that kill the owner:

    python -m fakes.codex_thread --home H --thread T [--every 2.0]

It reads the steps' names from stdin, one a line, and answers each with a line; with `--every` it runs the
rows that it finds, as an idle owner does at its tick. Killed at any point, it leaves what the real one leaves.
"""

import argparse
import os
import re
import sys
from pathlib import Path
from types import TracebackType

import anyio

from fakes.codex_shapes import agent_message, user_message
from fakes.codex_store import CodexHome, Input, Turn, new_uuid, text_input

ANSWER_MARK = re.compile(r"\[\[text:(.*?)\]\]", re.DOTALL)
HANG_MARK = "[[hang"  # a text with it keeps its turn running until it is interrupted, or steered


class AlreadyOwned(Exception):
    """Another process, or another owner in this one, has the thread loaded."""


class ThreadOwner:
    """Holds the writer lock of `thread_id` until closed. Raises AlreadyOwned, and KeyError if unknown.

    `running` is the turn in progress, `running_input` and `running_key` what it was started with.
    """

    def __init__(self, home: CodexHome, thread_id: str) -> None:
        self.home = home
        self.thread_id = home.thread(thread_id).id
        self.running: Turn | None = None
        self.running_input: Input = []
        self.running_key: str | None = None
        try:
            self._lock = home.lock_writer(thread_id)
        except BlockingIOError as error:
            raise AlreadyOwned(thread_id) from error
        for turn in home.turns(thread_id):
            if turn.status == "inProgress":  # of an owner that died
                home.end_turn(turn, "interrupted")

    def __enter__(self) -> "ThreadOwner":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unload the thread: a running turn is cut short, the next owner may come."""
        if self.running is not None:
            self._end("interrupted")
        os.close(self._lock)

    def start_turn(self, input_: Input, key: str | None = None) -> Turn:
        """A turn that the user typed; the queue is passed over."""
        return self._begin(self.home.start_turn(self.thread_id), input_, key)

    def take_row(self, *, even_if_paused: bool = False) -> Turn | None:
        """Remove the oldest row and start its turn, without an item; None if there is nothing to take.

        A paused queue gives nothing, unless `thread/queue/start` asks for it.
        """
        if self.running is not None:
            raise RuntimeError("a turn is running: complete, interrupt or block it first")
        rows = self.home.rows(self.thread_id)
        if not rows or (self.home.thread(self.thread_id).paused and not even_if_paused):
            return None
        row = rows[0]
        turn = self.home.start_turn(self.thread_id, row_id=row.id)
        return self._begin(turn, row.input, row.client_id)

    def record_item(self) -> None:
        """The running turn's message becomes an item; from here on its key can be found."""
        now = self.home.clock.now_ms()
        body = user_message(new_uuid(now), self.running_key, self.running_input, now)
        self.home.add_item(self._turn(), body)

    def steer(self, input_: Input, key: str | None) -> Turn:
        """A further message into the running turn, as a `turn/start` during a turn is taken."""
        self.running_input, self.running_key = input_, key
        self.record_item()
        return self._turn()

    def complete(self) -> Turn:
        """The model has answered; the queue is not paused any more."""
        now = self.home.clock.now_ms()
        body = agent_message(new_uuid(now), model_answer(self.running_input), now)
        self.home.add_item(self._turn(), body)
        self.home.set_paused(self.thread_id, False)
        return self._end("completed")

    def interrupt(self) -> Turn:
        """The user pressed Esc: the turn ends, the queue is paused until a turn completes."""
        self.home.set_paused(self.thread_id, True)
        return self._end("interrupted")

    def block(self) -> Turn:
        """A hook refused the message: the turn ends with no item, and the row is gone."""
        return self._end("completed")

    def end_exec(self) -> None:
        """`codex exec` at its end: takes a row, records it, and goes without asking its model."""
        if self.take_row() is not None:
            self.record_item()
        self.close()

    def run_row(self) -> Turn | None:
        """take_row, record_item, complete. None if there was nothing to take."""
        if self.take_row() is None:
            return None
        self.record_item()
        return self.complete()

    def _begin(self, turn: Turn, input_: Input, key: str | None) -> Turn:
        self.running, self.running_input, self.running_key = turn, input_, key
        return turn

    def _turn(self) -> Turn:
        if self.running is None:
            raise RuntimeError("no turn is running: start one or take a row first")
        return self.running

    def _end(self, status: str) -> Turn:
        ended = self.home.end_turn(self._turn(), status)
        self.running = None
        return ended


def new_thread(
    home: CodexHome,
    *,
    history_mode: str = "paginated",
    source: str = "vscode",
    parent_id: str | None = None,
    first_text: str = "hello",
) -> str:
    """The id of a thread with one completed turn: on disk, loaded nowhere, as after its session closed."""
    thread = home.create_thread(history_mode=history_mode, source=source, parent_id=parent_id)
    with ThreadOwner(home, thread.id) as owner:
        owner.start_turn(text_input(first_text))
        owner.record_item()
        owner.complete()
    return thread.id


def hangs(input_: Input) -> bool:
    """Whether the text asks for a turn that doesn't end by itself."""
    return any(HANG_MARK in str(part.get("text", "")) for part in input_)


def model_answer(input_: Input) -> str:
    """What the model says to `input_`: the text of a `[[text:...]]` mark, else "ok: " and the beginning."""
    text = "\n".join(str(part.get("text", "")) for part in input_)
    marked = ANSWER_MARK.search(text)
    return marked.group(1) if marked else f"ok: {text[:40]}"


STEPS = ("take_row", "record_item", "complete", "interrupt", "block", "end_exec", "run_row")


async def own(home: CodexHome, thread_id: str, every_s: float | None) -> None:
    """Own the thread until stdin ends, or, with `every_s`, for ever."""
    with ThreadOwner(home, thread_id) as owner:
        print("owned", flush=True)
        if every_s is None:
            for line in sys.stdin:
                step = line.strip()
                if step not in STEPS:
                    raise SystemExit(f"{step!r} is no step; the steps are {', '.join(STEPS)}")
                done = getattr(owner, step)()
                print(f"{step} {'nothing' if done is None and step.endswith('row') else 'done'}", flush=True)
        while every_s is not None:
            while (turn := owner.run_row()) is not None:
                print(f"ran turn {turn.id}: {model_answer(owner.running_input)}", flush=True)
            await anyio.sleep(every_s)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m fakes.codex_thread", description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, required=True, help="the CODEX_HOME")
    parser.add_argument("--thread", required=True, help="the thread's id")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="run the rows found, each SECONDS")
    chosen = parser.parse_args(arguments)
    anyio.run(own, CodexHome(chosen.home), chosen.thread, chosen.every)


if __name__ == "__main__":
    main()
