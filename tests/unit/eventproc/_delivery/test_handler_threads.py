"""Blocking handlers, which run in threads of their own. In real time, hence short."""

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    CloseReason,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc._delivery.handler_threads import HandlerThread, ThreadedHandler
from tests.scenarios.group_setup import Noting, Setup, until

SHORT: dict[str, Any] = {
    "load_balancing_interval": timedelta(seconds=0.1),
    "rebalance_interval": timedelta(seconds=0.02),
    "ownership_expiration": timedelta(seconds=6),
    "drain_delay": timedelta(seconds=0.1),
    "shutdown_timeout": timedelta(seconds=5),
    "uses_store_thread": True,
}


class Blocking(BlockingPartitionHandler):
    """Counts events, checkpoints each, and records in which thread it was called."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.threads: set[threading.Thread] = set()
        self.calls: list[object] = []

    def initialize(self, context: BlockingPartitionContext) -> None:
        """Record the call."""
        self.threads.add(threading.current_thread())
        self.calls.append("initialize")

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Fail at first; later count each event, and checkpoint."""
        self.threads.add(threading.current_thread())
        if "error" not in self.calls:
            raise RuntimeError("once")
        for event in events:
            context.state = str(int(context.state or b"0") + 1).encode()
            context.checkpoint(event)
            self.setup.handled.append((context.partition_id, event.sequence_number))
        self.calls.append(context.is_owned)

    def process_error(self, context: BlockingPartitionContext, error: Exception) -> None:
        """Record the call."""
        self.calls.append("error")

    def close(self, context: BlockingPartitionContext, reason: CloseReason) -> None:
        """Record the call."""
        self.threads.add(threading.current_thread())
        self.calls.append(reason)


def test_a_blocking_handler_is_called_in_one_thread_and_in_order():
    """Not the event loop's, and it ends with the partition. ``context.checkpoint`` blocks until the
    checkpoint is stored.
    """

    async def scenario():
        setup = Setup()
        handler = Blocking(setup)
        setup.publish(3)
        async with setup.processor(lambda: handler, **SHORT):
            await until(lambda: len(setup.handled) == 3)
        return setup, handler

    setup, handler = asyncio.run(scenario())

    assert setup.numbers() == [0, 1, 2]
    assert setup.checkpoint().state == b"3"
    assert handler.calls == ["initialize", "error", True, True, True, CloseReason.SHUTDOWN]
    (thread,) = handler.threads
    assert thread is not threading.current_thread()
    thread.join(10)
    assert not thread.is_alive()


def test_a_handler_that_blocks_the_event_loop_keeps_its_partition():
    """Leases are renewed in the store's thread, which the event loop cannot delay."""

    async def scenario():
        setup = Setup()
        ages_s: list[float] = []

        class BlockingTheLoop(Noting):
            async def process_events(self, context, events):
                until_s = time.monotonic() + 1.5
                while time.monotonic() < until_s:
                    pass  # Blocks the event loop on purpose.
                record = setup.account.records(setup.group).ownership_by_partition["0"]
                ages_s.append((setup.now() - record.last_modified).total_seconds())
                await super().process_events(context, events)

        setup.publish(1)
        async with setup.processor(lambda: BlockingTheLoop(setup), **SHORT) as processor:
            await until(lambda: setup.handled)
            lost = processor.statistics().lost_count
        return setup.numbers(), ages_s, lost

    numbers, ages_s, lost = asyncio.run(scenario())

    assert (numbers, lost) == ([0], 0)
    assert ages_s[0] < SHORT["ownership_expiration"].total_seconds()


class FakeContext:
    """As much of a context as ``ThreadedHandler`` reads."""

    partition_id = "0"


def test_a_call_that_timed_out_ends_before_the_next_one_begins():
    """A thread cannot be cancelled, so the next call waits for it."""

    class Overlapping(BlockingPartitionHandler):
        depth = 0
        deepest = 0

        def process_events(self, context, events):
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            time.sleep(0.05)
            self.depth -= 1

    async def scenario():
        handler = Overlapping()
        threaded: PartitionHandler = ThreadedHandler(handler)
        context = cast("PartitionContext", FakeContext())
        for _ in range(3):
            try:
                async with asyncio.timeout(0.01):
                    await threaded.process_events(context, [])
            except TimeoutError:
                pass
        await threaded.close(context, CloseReason.SHUTDOWN)
        return handler.deepest

    assert asyncio.run(scenario()) == 1


def test_close_comes_after_a_cancelled_call_of_another_lane():
    """A thread cannot be cancelled, and with key lanes it is not the thread that calls ``close``.
    Before the call has ended, no other owner may have the partition.
    """
    release = threading.Event()
    calls: list[str] = []

    class Slow(BlockingPartitionHandler):
        def process_events(self, context, events):
            calls.append("begun")
            release.wait(10)
            calls.append("ended")

        def close(self, context, reason):
            calls.append("closed")

    async def scenario():
        threaded: PartitionHandler = ThreadedHandler(Slow())
        whole, lane = (cast("PartitionContext", FakeContext()) for _ in range(2))
        calling = asyncio.create_task(threaded.process_events(lane, []))
        await until(lambda: calls)
        calling.cancel()
        await asyncio.wait([calling])
        closing = asyncio.create_task(threaded.close(whole, CloseReason.SHUTDOWN))
        early, _ = await asyncio.wait([closing], timeout=0.1)
        release.set()
        await closing
        return len(early)

    assert asyncio.run(scenario()) == 0
    assert calls == ["begun", "ended", "closed"]


def test_a_handler_thread_that_is_blocked_does_not_hold_up_stop():
    """``stop`` keeps ``shutdown_timeout``, and leaves the daemon thread behind."""
    called, release = threading.Event(), threading.Event()

    class Stuck(BlockingPartitionHandler):
        def process_events(self, context, events):
            called.set()
            release.wait(60)

    async def scenario():
        setup = Setup()
        setup.publish(1)
        processor = setup.processor(Stuck, **{**SHORT, "shutdown_timeout": timedelta(seconds=0.5)})
        await processor.start()
        await until(called.is_set)
        begun_s = time.monotonic()
        await processor.stop()
        return time.monotonic() - begun_s

    took_s = asyncio.run(scenario())
    release.set()

    assert took_s < 15


def test_the_store_has_a_thread_of_its_own_by_default():
    """So a handler that blocks the event loop delays no renewal, unless the setting is changed."""
    assert EventProcessorConfig().uses_store_thread


def test_a_call_that_was_cancelled_before_its_turn_is_not_made():
    """Its events are delivered again, by a later call or by another processor."""
    release = threading.Event()
    called: list[str] = []

    class Blocked(BlockingPartitionHandler):
        def process_events(self, context, events):
            called.append(events[0])
            release.wait(10)

    async def scenario():
        threaded: PartitionHandler = ThreadedHandler(Blocked())
        context = cast("PartitionContext", FakeContext())
        running, waiting = (
            asyncio.create_task(threaded.process_events(context, cast("Any", [name])))
            for name in ("running", "waiting")
        )
        await until(lambda: called)
        for call in (running, waiting):
            call.cancel()
        await asyncio.wait((running, waiting))
        release.set()
        await threaded.close(context, CloseReason.SHUTDOWN)

    asyncio.run(scenario())

    assert called == ["running"]


class CommittingContext(FakeContext):
    """A context whose transactions are committed when the test says so."""

    def __init__(self) -> None:
        self.is_committing, self.is_committed = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def open_transaction(self, event, *, is_cancelled):
        """Commit at the end of the block."""
        yield None
        self.is_committing.set()
        await self.is_committed.wait()

    async def commit_ended(self):
        """Return after the commit."""
        await self.is_committed.wait()


def test_a_cancelled_call_ends_after_the_commit_that_is_under_way():
    """Its events are delivered again unless they are committed, so that has to be known."""

    def work(view):
        with view.transaction():
            pass

    async def scenario():
        context = CommittingContext()
        thread = HandlerThread(cast("Any", context))
        calling = asyncio.ensure_future(thread.call(lambda: work(thread.view)))
        await context.is_committing.wait()
        calling.cancel()
        early, _ = await asyncio.wait([calling], timeout=0.1)
        context.is_committed.set()
        await asyncio.wait([calling])
        await thread.call(lambda: None)
        thread.end()
        return len(early), calling.cancelled()

    assert asyncio.run(scenario()) == (0, True)


def test_the_events_after_one_that_failed_are_delivered_again():
    """None of them was tried, also if the first of the batch failed."""

    failures: list[object] = []

    class Failing(BlockingPartitionHandler):
        def process_event(self, context, event):
            if not failures:
                failures.append(event)
                raise ValueError
            setup.handled.append((context.partition_id, event.sequence_number))

    async def scenario():
        setup.publish(4)
        async with setup.processor(Failing, **SHORT):
            await until(lambda: 3 in setup.numbers())

    setup = Setup()
    asyncio.run(scenario())

    assert sorted(setup.numbers()) == [0, 1, 2, 3]
