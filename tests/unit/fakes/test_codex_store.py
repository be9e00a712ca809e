"""The file behind the fakes of Codex, as a test leaves it behind."""

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fakes.codex_store import CodexHome


def test_a_home_that_is_forgotten_in_a_cycle_is_closed_by_whichever_thread_collects_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database's own thread may be the one; a complaint would be laid at another test's door."""
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    home: Any = CodexHome(tmp_path)
    home.itself = home
    del home
    collecting = threading.Thread(target=gc.collect)
    collecting.start()
    collecting.join()
    assert complaints == []
