"""The hook that a faulted process sets, as far as it goes without ending the process."""

import os
from pathlib import Path

import pytest

from channel.fault_places import Place
from tests.crash.faults import Fault, FaultHook, Trace

LINE = memoryview(b'{"id":4,"method":"thread/queue/add","params":{}}\n')


@pytest.mark.parametrize("spec", ["nowhere:x:die", "committed:hand_over:explode", "committed", "committed:x#a:die"])
def test_a_fault_that_would_never_come_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="is no fault"):
        Fault.parse(spec)


def test_a_fault_reads_back_as_what_was_written() -> None:
    fault = Fault.parse("committed:hand_over#3:die")
    assert (fault.place, fault.of, fault.nth, fault.what) == ("committed", "hand_over", 3, "die")
    assert Fault.parse(str(fault)) == fault


def test_a_process_tells_its_pid_and_what_it_passes(tmp_path: Path) -> None:
    hook = FaultHook(None, tmp_path / "trace")
    hook.passing(Place.COMMITTED, "send")
    assert bytes(hook.written_at_once(Place.IN_REQUEST, LINE)) == bytes(LINE)
    trace = Trace(tmp_path / "trace")
    assert trace.passings() == ["committed:send", "in_request:thread/queue/add"]
    assert (trace.pid, trace.was_hit) == (os.getpid(), False)


def test_a_write_in_which_a_fault_is_due_goes_out_in_part(tmp_path: Path) -> None:
    """The fault itself comes with the rest, and would end this process."""
    fault = Fault.parse("in_request:thread/queue/add#2:die=0.25")
    hook = FaultHook(fault, tmp_path / "trace")
    assert len(hook.written_at_once(Place.IN_REQUEST, LINE)) == len(LINE)
    assert len(hook.written_at_once(Place.IN_REQUEST, LINE)) == len(LINE) // 4
    assert not Trace(tmp_path / "trace").was_hit
