"""Tasks that were started together end together, and no error stays unretrieved."""

import asyncio
from contextlib import suppress

import pytest

from eventproc._base.tasks import (
    PART_MAX,
    CancellableBlock,
    cancellation_kept,
    end,
    in_parts,
    together,
)


async def give(value: int, after_s: float = 0.0) -> int:
    """Return the value after a while."""
    await asyncio.sleep(after_s)
    return value


async def fail() -> int:
    """Raise after one turn of the loop."""
    await asyncio.sleep(0)
    raise ValueError("the first") from KeyError("its cause")


async def test_together_returns_all_results_in_the_order_of_its_arguments():
    """Whichever task ends first."""
    assert await together(give(1, 0.01), give(2)) == [1, 2]
    assert await together() == []


async def test_many_calls_are_made_in_parts_and_return_their_results_in_order():
    """Not a task for each of thousands at once."""
    under_way, most = 0, 0

    async def call(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return -number

    numbers = range(2 * PART_MAX + 1)

    assert await in_parts(call, numbers) == [-number for number in numbers]
    assert most == PART_MAX


async def test_the_first_error_ends_the_other_tasks_and_is_raised_as_it_is():
    """Not in a group, and with its cause. The other tasks have ended by then."""
    ended = []

    async def last() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("last")
        return 0

    with pytest.raises(ValueError, match="the first") as raised:
        await together(last(), fail())

    assert ended == ["last"]
    assert isinstance(raised.value.__cause__, KeyError)


async def test_a_part_that_fails_leaves_its_caller_not_cancelled():
    """Task groups of Python 3.11 and 3.12.1 do, so the caller would end in place of the error."""

    async def fail_late() -> int:
        await asyncio.sleep(0.01)
        raise ValueError("one part")

    task = asyncio.current_task()
    with pytest.raises(ValueError, match="one part"), cancellation_kept():
        await together(asyncio.sleep(10, 0), fail_late())

    assert task is not None
    assert task.cancelling() == 0


async def test_cancelling_together_cancels_its_tasks():
    """And waits for their end."""
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("one")

    whole = asyncio.create_task(together(wait(), wait()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    whole.cancel()
    await asyncio.wait([whole])

    assert whole.cancelled()
    assert ended == ["one", "one"]


async def test_end_waits_for_all_tasks_whatever_they_raise():
    """Errors at the end, and from before, are discarded."""

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            raise ValueError("at the end") from None

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(fail())]
    await asyncio.sleep(0.01)
    await end(tasks)
    await end([])

    assert all(task.done() for task in tasks)


async def suppress_cancellation(then: Exception | None = None) -> str:
    """Await until this task is cancelled; then return, or raise *then*, as if nothing happened."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    if then is not None:
        raise then
    return "result"


@pytest.mark.parametrize("then", [None, ValueError("of the suppressed cancellation")])
async def test_a_suppressed_cancellation_is_raised_after_the_block(then):
    """Whether the code that suppressed it returned a result or raised an error of its own."""

    async def work() -> None:
        with cancellation_kept():
            await suppress_cancellation(then)
        pytest.fail("the task went on")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await end([task])

    assert task.cancelled()


async def test_a_block_that_is_not_cancelled_keeps_its_error():
    """And an expired time limit inside the block does not count as a cancellation."""
    with pytest.raises(ValueError, match="the first"), cancellation_kept():
        await fail()
    with cancellation_kept():
        async with asyncio.timeout(0):
            assert await suppress_cancellation() == "result"


@pytest.mark.parametrize("is_cancelled_before", [False, True])
@pytest.mark.parametrize("is_cancelled_by_others", [False, True])
async def test_a_block_knows_whether_it_was_cancelled_by_what_it_needs(
    is_cancelled_before, is_cancelled_by_others
):
    """Also in a task that went on after an earlier cancellation, as Azure's client may."""

    async def run() -> bool:
        task = asyncio.current_task()
        assert task is not None
        block = CancellableBlock()
        if is_cancelled_before:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        block.enter()
        block.cancel()
        if is_cancelled_by_others:
            task.cancel()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            return await block.leave(error)
        raise AssertionError("the block was not cancelled")

    assert await asyncio.create_task(run()) is not is_cancelled_by_others
