"""A blocking handler holds its resource in a thread, and its end is waited for."""

import asyncio
import threading
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    BlockingHeldResource,
    BlockingResourceHandler,
    HeldResource,
    ResourceProcessor,
    Resources,
)
from eventproc._group.resources.work import ThreadedResourceHandler

pytestmark = pytest.mark.real_time  # with threads

AGES = timedelta(hours=1)


def held(remaining_s=60.0):
    """A resource as a handler gets it."""
    return HeldResource("a", epoch=7, owner_id="x", remaining_s=lambda: remaining_s)


class Waiting(BlockingResourceHandler):
    """Holds until it is cancelled, and then takes a moment to close."""

    def __init__(self):
        self.began, self.ended = threading.Event(), threading.Event()
        self.may_end = threading.Event()
        self.drained_in = None

    def hold(self, held: BlockingHeldResource) -> None:
        """Wait for the cancellation."""
        self.seen = held
        self.began.set()
        assert held.wait(AGES)
        self.may_end.wait()
        self.ended.set()

    def drain(self, held: BlockingHeldResource) -> None:
        """Note the thread."""
        self.drained_in = threading.current_thread().name


async def test_a_cancelled_hold_ends_when_its_thread_has_returned():
    """So the resource is not handed over while the thread still uses it."""
    handler = Waiting()
    task = asyncio.create_task(ThreadedResourceHandler(handler).hold(held()))
    await asyncio.to_thread(handler.began.wait)
    task.cancel()
    await asyncio.wait([task], timeout=0.05)
    was_done, was_cancelled = task.done(), handler.seen.is_cancelled
    handler.may_end.set()
    await asyncio.wait([task])

    assert (was_done, was_cancelled) == (False, True)
    assert handler.ended.is_set()
    assert task.cancelled()


async def test_a_second_cancellation_leaves_the_thread():
    """At the end of the time for a stop, a thread that never returns must not hold it up."""
    handler = Waiting()
    task = asyncio.create_task(ThreadedResourceHandler(handler).hold(held()))
    await asyncio.to_thread(handler.began.wait)
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.01)
    was_ended = handler.ended.is_set()
    handler.may_end.set()

    assert task.cancelled()
    assert not was_ended


async def test_an_error_in_the_thread_is_raised():
    """Like that of a coroutine."""

    class Failing(BlockingResourceHandler):
        def hold(self, held: BlockingHeldResource) -> None:
            raise OSError(held.name)

    with pytest.raises(OSError, match="a"):
        await ThreadedResourceHandler(Failing()).hold(held())


async def test_drain_runs_in_another_thread_than_hold():
    """Which still holds the resource meanwhile."""
    handler = Waiting()
    threaded = ThreadedResourceHandler(handler)
    await threaded.drain(held())
    assert handler.drained_in is None  # It does not hold anything yet.
    task = asyncio.create_task(threaded.hold(held()))
    await asyncio.to_thread(handler.began.wait)
    await threaded.drain(held())
    handler.may_end.set()
    task.cancel()
    await asyncio.wait([task])

    assert handler.drained_in == "eventproc-drain-a"


async def test_a_processor_holds_resources_in_threads():
    """Each in one of its own; the view has the name, the token and the trust in the lease."""
    handlers = [Waiting(), Waiting()]
    for handler in handlers:
        handler.may_end.set()
    unused = iter(handlers)

    processor = ResourceProcessor(
        resources=Resources(["a", "b"]),
        store=MemoryCheckpointStore(),
        group="g",
        handler=lambda: next(unused),
    )
    async with processor:
        for handler in handlers:
            await asyncio.to_thread(handler.began.wait)
        seen = [handler.seen for handler in handlers]
        assert sorted(view.name for view in seen) == ["a", "b"]
        assert all(view.is_held and view.remaining > timedelta(0) for view in seen)
        assert {view.epoch for view in seen} == {r.epoch for r in processor.statistics().resources}
    assert all(handler.ended.is_set() for handler in handlers)
    assert not any(view.is_held for view in seen)
