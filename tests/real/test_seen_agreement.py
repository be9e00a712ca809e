"""A short campaign of each side; `python -m tests.real.seen_agreement` runs a long one."""

import os
import random

import pytest

from tests.real.seen_agreement import run_side
from tests.real.seen_verdict import Showing, judge

MESSAGES = 25
SEED = int(os.environ.get("AGENT_CHANNEL_SEED") or random.randrange(2**32))

SEEN = {"message_id": 7, "state": "seen", "text": "hello"}
SHOWN = Showing(7, "hello")


@pytest.mark.real
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "side",
    [
        pytest.param("codex", marks=pytest.mark.fault("F22")),
        pytest.param("claude", marks=[pytest.mark.fault("F1"), pytest.mark.fault("F15")]),
    ],
)
async def test_what_is_called_seen_stands_in_the_models_requests_and_the_other_way_round(side: str) -> None:
    print(f"AGENT_CHANNEL_SEED={SEED}")
    verdict, struck = await run_side(side, MESSAGES, SEED)
    assert not any(verdict.troubles.values()), verdict.troubles
    assert verdict.messages >= MESSAGES
    assert struck


@pytest.mark.parametrize(
    ("change", "shown", "trouble"),
    [
        ({}, [], "seen, but not shown"),
        ({"state": "accepted"}, [SHOWN], "shown, but not seen"),
        ({"state": "uncertain"}, [SHOWN], "shown, but not seen"),
        ({"state": "accepted"}, [], "lost"),
        ({"state": "pending"}, [], "lost"),
        ({"message_id": 8}, [Showing(8, "hello")], "lost"),
        ({}, [SHOWN, SHOWN], "twice"),
        ({}, [SHOWN, Showing(7, "hell")], "with another text"),
    ],
)
def test_the_judge_names_what_should_not_be(change: dict[str, object], shown: list[Showing], trouble: str) -> None:
    assert judge([{**SEEN, **change}], shown, answered={7}).troubles[trouble]


@pytest.mark.parametrize(
    ("state", "shown"), [("seen", [SHOWN]), ("seen", [SHOWN, SHOWN._replace(is_repeat=True)]), ("uncertain", [])]
)
def test_the_judge_lets_stand_what_may_be(state: str, shown: list[Showing]) -> None:
    assert judge([{**SEEN, "state": state}], shown, answered={7}).holds
