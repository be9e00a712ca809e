"""The small rules of a waiter: which deliveries are looked for, how long it rests, what it says, what it repeats."""

import anyio
import pytest

from channel.delivery_states import State
from channel.errors import StoreBusy
from channel.look_schedule import LOOK_S_MAX
from channel.messages import OpenDelivery
from fakes.clock import FakeClock
from tests.unit.waiters.rig import WAIT_S
from waiters import status
from waiters.background import background_tasks
from waiters.reconciliation import LOOKED_FOR_AT_ONCE, is_due, to_look_for
from waiters.retries import REPEATS_MAX, REST_S_MAX, BackOff, while_busy

NOW_MS = 1_000_000


def open_delivery(number: int, **changes: object) -> OpenDelivery:
    values: dict[str, object] = {
        "delivery_id": number,
        "message_id": number,
        "state": State.ACCEPTED,
        "text_sha256": "",
        "place": "",
        "handed_over_at_ms": 0,
        "of_former_term": False,
        "elsewhere": False,
        "role_is_replaced": False,
        "next_look_at_ms": NOW_MS + 1,
    }
    return OpenDelivery(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("in_ms", "due"),
    [(-1, True), (0, True), (1, False), (LOOK_S_MAX * 1_000, False), (LOOK_S_MAX * 1_000 + 1, True)],
)
def test_a_look_is_due_when_its_time_has_come_or_lies_further_ahead_than_any_interval(in_ms: int, due: bool) -> None:
    assert is_due(NOW_MS + in_ms, NOW_MS) is due


def test_without_a_time_nothing_is_due() -> None:
    assert not is_due(None, NOW_MS)


def test_only_what_is_due_is_looked_for_and_what_is_wanted_at_once() -> None:
    due = open_delivery(1, next_look_at_ms=NOW_MS)
    left = open_delivery(2, of_former_term=True)
    others = open_delivery(3)

    assert to_look_for([due, left, others], NOW_MS, at_once=()) == [due]
    assert to_look_for([due, left, others], NOW_MS, at_once={left.delivery_id}) == [due, left]


def test_what_stands_in_the_middle_of_a_hand_over_is_looked_for_first_however_much_else_there_is() -> None:
    accepted = [open_delivery(number, of_former_term=True) for number in range(LOOKED_FOR_AT_ONCE + 50)]
    handed_over = open_delivery(999, state=State.HANDED_OVER, of_former_term=True, next_look_at_ms=None)
    all_of_them = [*accepted, handed_over]

    wanted = to_look_for(all_of_them, NOW_MS, at_once={each.delivery_id for each in all_of_them})

    assert wanted == [handed_over, *accepted[: LOOKED_FOR_AT_ONCE - 1]]


def test_rests_double_up_to_a_minute_and_a_success_begins_anew() -> None:
    back_off = BackOff()
    assert [back_off.after_failure_s() for _ in range(8)] == [1, 2, 4, 8, 16, 32, REST_S_MAX, REST_S_MAX]
    back_off.succeeded()
    assert back_off.after_failure_s() == 1


def test_the_words_name_the_messages_that_a_person_should_know_of() -> None:
    assert status.compose("", {}) == ""
    assert status.compose("queue full: 100", {}) == "queue full: 100"
    assert (
        status.compose("queue full", {State.CONFLICT: [9], State.UNCERTAIN: [3, 7]})
        == "queue full; delivery uncertain: 3, 7; key conflict: 9"
    )
    assert status.compose("", {State.UNCERTAIN: list(range(25))}).endswith("18, 19 and 5 more")


def test_every_word_is_in_the_list() -> None:
    words = {value for name, value in vars(status).items() if name.isupper() and isinstance(value, str)}

    assert words == set(status.WORDS)


class TestRepeating:
    """Only while the database is locked by others."""

    async def run(self, failures: int) -> tuple[str, int]:
        clock, calls = FakeClock(), 0

        async def call() -> str:
            nonlocal calls
            calls += 1
            if calls <= failures:
                raise StoreBusy
            return "done"

        async def pass_time() -> None:
            while True:
                await clock.until_asleep()
                clock.advance(clock.asleep()[0])
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(WAIT_S):
            async with background_tasks() as tasks:
                tasks.start_soon(pass_time)
                return await while_busy(clock, call), calls

    @pytest.mark.parametrize("failures", [0, 1, REPEATS_MAX])
    async def test_a_busy_store_is_asked_again(self, failures: int) -> None:
        assert await self.run(failures) == ("done", failures + 1)

    async def test_a_store_that_stays_busy_is_given_up(self) -> None:
        with pytest.raises(StoreBusy):
            await self.run(REPEATS_MAX + 1)

    async def test_any_other_error_comes_out_at_once(self) -> None:
        async def call() -> None:
            raise LookupError

        with pytest.raises(LookupError):
            await while_busy(FakeClock(), call)


class TestBackgroundTasks:
    """A task group that does not show."""

    async def test_an_error_of_the_body_comes_out_as_itself(self) -> None:
        with pytest.raises(LookupError):
            async with background_tasks() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                raise LookupError

    async def test_the_tasks_end_with_the_body(self) -> None:
        ended = anyio.Event()

        async def run() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        with anyio.fail_after(WAIT_S):
            async with background_tasks() as tasks:
                tasks.start_soon(run)
                await anyio.lowlevel.checkpoint()
        assert ended.is_set()
