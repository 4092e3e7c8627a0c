"""What a handler's thread does to position and state, beside the loop and after it was cut off."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import pytest

from eventproc import BlockingPartitionContext, BlockingPartitionHandler, ReceivedEvent
from eventproc.core.progress import PartitionProgress
from eventproc.models import SequenceRange
from eventproc.partition.handler_threads import HandlerThread, ThreadContext
from tests.stories.scene import Scene, until
from tests.unit.eventproc.partition.test_handler_threads import SHORT

EVENT = cast("ReceivedEvent", object())


def wait_until_cancelled(context: BlockingPartitionContext) -> None:
    """As a call does that is late."""
    until_s = time.monotonic() + 20
    while not context.is_cancelled and time.monotonic() < until_s:
        time.sleep(0.001)


class Told:
    """A context that keeps what it is told."""

    partition_id = "7"

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.said: list[object] = []

    def done(self, event: ReceivedEvent) -> None:
        """Keep it."""
        self.said.append(("done", event))

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Keep it."""
        self.said.append(("checkpoint", event))


async def cut_off(told: Any, work: Callable[[BlockingPartitionContext], None]) -> None:
    """Have a thread do something, and cut that off at once."""
    thread = HandlerThread(ThreadContext(told, asyncio.get_running_loop()))
    with suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await thread.call(lambda: work(thread.view))
    await thread.call(lambda: None)
    thread.end()


class InterruptedProgress(PartitionProgress):
    """While a snapshot is taken, the handler's thread gets its turn."""

    events: Sequence[ReceivedEvent] = ()

    def _completed(self, handled: int) -> tuple[SequenceRange, ...]:
        for event in self.events[:1]:
            self.events = self.events[1:]
            self.state = str(event.sequence_number).encode()
            self.done_through(event)
        return super()._completed(handled)


async def test_a_thread_is_named_after_its_partition():
    """As profilers, debuggers and log formats show it."""
    names = []
    await cut_off(Told(), lambda _: names.append(threading.current_thread().name))

    assert names == ["eventproc-handler-7"]


async def test_a_position_and_its_state_are_looked_at_together():
    """The loop takes down progress while the handler's thread makes some."""
    scene = Scene()
    first, *others = (scene.hub.publish(b"", partition_id="0")[1] for _ in range(3))
    progress = InterruptedProgress()
    progress.admit([first, *others])
    progress.begin_call()
    progress.state = b"0"
    progress.done_through(first)
    progress.events = others
    seen = [progress.snapshot() for _ in others]

    assert [(p.sequence_number, p.state) for p in seen if p] == [(0, b"0"), (1, b"1")]


async def test_a_call_that_was_cut_off_changes_no_state():
    """Its events come again to the state of before, and none of them is missing in it."""
    told = Told()

    def work(context: BlockingPartitionContext) -> None:
        context.state = b"in time"
        wait_until_cancelled(context)
        context.state = b"late"
        context.done(EVENT)
        with pytest.raises(CancelledError):
            context.checkpoint(EVENT)
        context.checkpoint()

    await cut_off(told, work)

    assert told.state == b"in time"
    assert told.said == [("checkpoint", None), ("checkpoint", None)]


async def test_without_a_state_what_was_done_late_is_done():
    """Then fewer events come again."""
    told = Told()

    def work(context: BlockingPartitionContext) -> None:
        wait_until_cancelled(context)
        context.done(EVENT)
        context.checkpoint(EVENT)

    await cut_off(told, work)

    assert told.said == [("done", EVENT), ("checkpoint", EVENT)]


async def test_a_call_is_cut_off_when_its_change_of_the_state_is_made():
    """What was begun in time is not made behind the back of who takes the state back."""
    begun, end = threading.Event(), threading.Event()
    states = []

    class Slow(Told):
        @property
        def state(self) -> bytes | None:
            return None

        @state.setter
        def state(self, value: bytes | None) -> None:
            if value is not None:
                begun.set()
                end.wait(0.1)
                states.append(value)

    thread = HandlerThread(ThreadContext(cast("Any", Slow()), asyncio.get_running_loop()))
    calling = asyncio.ensure_future(thread.call(lambda: setattr(thread.view, "state", b"1")))
    await until(begun.is_set)
    calling.cancel()
    await asyncio.wait([calling])

    assert states == [b"1"]
    thread.end()


class Late(BlockingPartitionHandler):
    """Handles one event, and is late with the next one."""

    def __init__(self) -> None:
        self.is_late = False

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Count; from the second event on, only after the call was cut off."""
        if context.sequence_number is not None:
            self.is_late = True
            wait_until_cancelled(context)
        context.state = str(int(context.state or b"0") + len(events)).encode()
        if not self.is_late:
            context.checkpoint(events[-1])


def test_a_call_that_outlives_a_stop_leaves_no_trace_in_the_state():
    """The next owner gets its events, and counts them then."""

    async def story():
        scene = Scene()
        handler = Late()
        scene.publish(1)
        stop_s = {**SHORT, "shutdown_timeout": timedelta(seconds=0.5)}
        async with scene.processor(lambda: handler, **stop_s):
            await until(lambda: scene.checkpointed() == 0)
            scene.publish(1)
            await until(lambda: handler.is_late)
        return scene.checkpoint()

    checkpoint = asyncio.run(story())

    assert (checkpoint.sequence_number, checkpoint.state) == (0, b"1")
