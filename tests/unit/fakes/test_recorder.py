"""The list that tests wait on."""

import anyio

from fakes.recorder import Recorder

WAIT_S = 5


async def test_next_returns_each_item_once_in_order_of_arrival():
    recorder = Recorder[int]()
    recorder.add(1)
    recorder.add(2)
    with anyio.fail_after(WAIT_S):
        assert [await recorder.next(), await recorder.next()] == [1, 2]


async def test_waiting_tasks_are_woken_by_the_item_that_matches():
    recorder = Recorder[int]()
    found: list[int] = []

    async def wait_for_an_even_one() -> None:
        found.append(await recorder.wait_for(lambda item: item % 2 == 0))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_an_even_one)
            tasks.start_soon(wait_for_an_even_one)
            await anyio.wait_all_tasks_blocked()
            recorder.add(1)
            await anyio.wait_all_tasks_blocked()
            assert found == []
            recorder.add(2)
    assert found == [2, 2]


async def test_waiting_for_an_item_finds_one_that_next_already_returned():
    recorder = Recorder[int]()
    recorder.add(7)
    with anyio.fail_after(WAIT_S):
        assert await recorder.next() == 7
        assert await recorder.wait_for(lambda item: item == 7) == 7
