"""Ordinary functions as handlers, in threads of their own. In real time, hence short."""

import asyncio
import threading
import time
from collections.abc import Sequence
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
from eventproc.partition.handler_threads import ThreadedHandler
from tests.stories.scene import Noting, Scene, until

SHORT: dict[str, Any] = {
    "load_balancing_interval": timedelta(seconds=0.1),
    "rebalance_interval": timedelta(seconds=0.02),
    "ownership_expiration": timedelta(seconds=0.6),
    "drain_delay": timedelta(seconds=0.1),
    "shutdown_timeout": timedelta(seconds=5),
    "uses_store_thread": True,
}


class Ordinary(BlockingPartitionHandler):
    """Counts, checkpoints, and notes in which thread it was called."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.threads: set[int] = set()
        self.calls: list[object] = []

    def initialize(self, context: BlockingPartitionContext) -> None:
        """Note it."""
        self.threads.add(threading.get_ident())
        self.calls.append("initialize")

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Count each event, and checkpoint."""
        self.threads.add(threading.get_ident())
        if "error" not in self.calls:
            raise RuntimeError("once")
        for event in events:
            context.state = str(int(context.state or b"0") + 1).encode()
            context.checkpoint(event)
            self.scene.handled.append((context.partition_id, event.sequence_number))
        self.calls.append(context.is_owned)

    def process_error(self, context: BlockingPartitionContext, error: Exception) -> None:
        """Note it."""
        self.calls.append("error")

    def close(self, context: BlockingPartitionContext, reason: CloseReason) -> None:
        """Note it."""
        self.threads.add(threading.get_ident())
        self.calls.append(reason)


def test_ordinary_functions_are_called_in_one_thread_and_in_order():
    """With the same context, which blocks until a checkpoint is stored."""

    async def story():
        scene = Scene()
        handler = Ordinary(scene)
        scene.publish(3)
        async with scene.processor(lambda: handler, **SHORT):
            await until(lambda: len(scene.handled) == 3)
        return scene, handler

    scene, handler = asyncio.run(story())

    assert scene.numbers() == [0, 1, 2]
    assert scene.checkpoint().state == b"3"
    assert handler.calls == ["initialize", "error", True, True, True, CloseReason.SHUTDOWN]
    assert len(handler.threads) == 1
    assert threading.get_ident() not in handler.threads


def test_a_handler_that_blocks_the_loop_keeps_its_partition():
    """The store and the renewals live in a thread of their own, which nothing here delays."""

    async def story():
        scene = Scene()
        ages_s: list[float] = []

        class Rude(Noting):
            async def process_events(self, context, events):
                until_s = time.monotonic() + 1.5
                while time.monotonic() < until_s:
                    pass  # The very thing that must do no harm.
                record = scene.account.records(scene.group).ownership_by_partition["0"]
                ages_s.append((scene.now() - record.last_modified).total_seconds())
                await super().process_events(context, events)

        scene.publish(1)
        async with scene.processor(lambda: Rude(scene), **SHORT) as processor:
            await until(lambda: scene.handled)
            lost = processor.statistics().lost_count
        return scene.numbers(), ages_s, lost

    numbers, ages_s, lost = asyncio.run(story())

    assert (numbers, lost) == ([0], 0)
    assert ages_s[0] < SHORT["ownership_expiration"].total_seconds()


class Place:
    """All that a thread wants to know of its partition."""

    partition_id = "0"


def test_a_call_that_is_cut_is_over_before_the_next_one_begins():
    """A thread cannot be stopped, so the next call waits for it."""

    class Overlapping(BlockingPartitionHandler):
        depth = 0
        deepest = 0

        def process_events(self, context, events):
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            time.sleep(0.05)
            self.depth -= 1

    async def story():
        handler = Overlapping()
        threaded: PartitionHandler = ThreadedHandler(handler)
        context = cast("PartitionContext", Place())
        for _ in range(3):
            try:
                async with asyncio.timeout(0.01):
                    await threaded.process_events(context, [])
            except TimeoutError:
                pass
        await threaded.close(context, CloseReason.SHUTDOWN)
        return handler.deepest

    assert asyncio.run(story()) == 1


def test_a_thread_that_never_comes_back_does_not_keep_the_processor():
    """Stop keeps its budget, and the thread is a daemon."""
    release = threading.Event()

    class Stuck(BlockingPartitionHandler):
        def process_events(self, context, events):
            release.wait(30)

    async def story():
        scene = Scene()
        scene.publish(1)
        processor = scene.processor(Stuck, **{**SHORT, "shutdown_timeout": timedelta(seconds=0.5)})
        await processor.start()
        await asyncio.sleep(0.2)
        begun_s = time.monotonic()
        await processor.stop()
        return time.monotonic() - begun_s

    took_s = asyncio.run(story())
    release.set()

    assert took_s < 1.0


def test_the_defaults_can_work():
    """What nobody configures must not be refused."""
    assert EventProcessorConfig().uses_store_thread
