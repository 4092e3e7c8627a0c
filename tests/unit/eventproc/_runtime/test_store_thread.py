"""Calls between a processor's event loop and the thread of its store."""

import asyncio
import gc
from collections.abc import Callable
from typing import cast

import pytest

from eventproc._runtime.store_thread import InlineExecutor, ThreadExecutor
from eventproc.errors import StoreUnavailableError

pytestmark = pytest.mark.real_time  # with threads


class ClosingLoop:
    """A loop that is closed between ``is_closed`` and the call."""

    def is_closed(self) -> bool:
        """Return that it is open."""
        return False

    def call_soon_threadsafe(self, function):
        """Raise, because it has been closed."""
        raise RuntimeError("Event loop is closed")


async def test_a_notification_to_a_loop_that_closes_is_dropped():
    """The store's thread may be at work when the program ends without waiting for it."""
    executor = ThreadExecutor("test")
    home, executor._home = executor._home, cast("asyncio.AbstractEventLoop", ClosingLoop())
    executor.call_soon(bool)
    executor._home = home
    await executor.close()


@pytest.mark.parametrize("make", [InlineExecutor, lambda: ThreadExecutor("test")])
async def test_a_call_after_the_close_raises(make):
    """A handler that outlives its processor gets an error instead of waiting for ever."""
    executor = make()
    calls = []

    async def call() -> None:
        calls.append("something")

    await executor.call(call())
    closing = asyncio.create_task(executor.close())
    await asyncio.sleep(0)

    with pytest.raises(StoreUnavailableError, match="has stopped"):
        await executor.call(call())
    await closing
    with pytest.raises(StoreUnavailableError, match="has stopped"):
        await executor.call(call())
    assert calls == ["something"]


@pytest.mark.parametrize("make", [InlineExecutor, lambda: ThreadExecutor("test")])
async def test_a_call_under_way_at_the_close_is_cancelled(make):
    """Its caller does not wait for ever."""
    executor = make()
    waiting = asyncio.create_task(executor.call(asyncio.Event().wait()))
    await asyncio.sleep(0)
    await executor.close()
    await asyncio.wait([waiting], timeout=20)

    assert waiting.cancelled()


@pytest.mark.parametrize("make", [InlineExecutor, lambda: ThreadExecutor("test")])
async def test_the_last_call_begins_when_all_others_have_ended(make):
    """The store is closed by it: a call whose caller was cancelled must not find it closed."""
    executor = make()
    happened: list[str] = []

    async def two_requests() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            happened.append("request ended")

    async def close_store() -> None:
        happened.append("store closed")

    caller = asyncio.create_task(executor.call(two_requests()))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    await executor.call_last(close_store())

    assert happened == ["request ended", "store closed"]
    with pytest.raises(StoreUnavailableError, match="has stopped"):
        await executor.call(close_store())
    await executor.close()


@pytest.mark.parametrize("kind", [lambda: ThreadExecutor("test"), InlineExecutor])
async def test_the_error_of_a_call_whose_caller_was_cancelled_is_retrieved(kind):
    """So asyncio does not report it as never retrieved."""
    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    executor, started = kind(), asyncio.Event()

    async def fail() -> None:
        executor.call_soon(started.set)
        await asyncio.sleep(0.05)
        raise OSError("too late")

    caller = asyncio.create_task(executor.call(fail()))
    await started.wait()
    caller.cancel()
    await asyncio.wait([caller])
    await asyncio.sleep(0.1)
    await executor.close()
    was_cancelled = caller.cancelled()
    del caller  # It refers to the result.
    gc.collect()

    assert was_cancelled
    assert reports == []


@pytest.mark.parametrize("kind", [lambda: ThreadExecutor("test"), InlineExecutor])
async def test_a_call_whose_caller_is_cancelled_runs_to_its_end(kind):
    """A conditional write that is cancelled half-way has an unknown outcome."""
    executor = kind()
    begun, ends = asyncio.Event(), asyncio.Event()
    outcomes: list[str] = []

    async def write() -> None:
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()
        here.append(lambda: loop.call_soon_threadsafe(gate.set))
        executor.call_soon(begun.set)
        try:
            await gate.wait()
            outcomes.append("written")
        except asyncio.CancelledError:
            outcomes.append("cut off")
            raise
        finally:
            executor.call_soon(ends.set)

    here: list[Callable[[], object]] = []
    caller = asyncio.create_task(executor.call(write()))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    here[0]()
    async with asyncio.timeout(20):
        await ends.wait()
    await executor.close()

    assert caller.cancelled()
    assert outcomes == ["written"]
