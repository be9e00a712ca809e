"""The machine's own clock and ids."""

import anyio

from channel.clock import SystemClock, SystemIds


async def test_a_time_that_came_while_it_was_computed_is_slept_for_no_longer() -> None:
    """`due - now` may be a little below zero, and anyio refuses such a delay."""
    with anyio.fail_after(5):
        await SystemClock().sleep(-0.001)


def test_an_id_is_sixteen_hexadecimal_digits_and_comes_once() -> None:
    ids = [SystemIds().new_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(len(each) == 16 and int(each, 16) >= 0 and each == each.lower() for each in ids)
