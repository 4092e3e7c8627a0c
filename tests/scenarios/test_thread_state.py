"""Position and state that a handler's thread changes beside the loop, or after its call ended."""

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
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.handler_threads import HandlerThread
from eventproc.models import SequenceRange
from tests.scenarios.group_setup import Setup, until
from tests.unit.eventproc._delivery.test_handler_threads import SHORT

EVENT = cast("ReceivedEvent", object())


def wait_until_cancelled(context: BlockingPartitionContext) -> None:
    """Wait as a call does that is late."""
    until_s = time.monotonic() + 20
    while not context.is_cancelled and time.monotonic() < until_s:
        time.sleep(0.001)


class RecordingContext:
    """A context that records its calls."""

    partition_id = "7"

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.calls: list[object] = []

    def done(self, event: ReceivedEvent) -> None:
        """Record the call."""
        self.calls.append(("done", event))

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Record the call."""
        self.calls.append(("checkpoint", event))


Wait = Callable[[], None]
Work = Callable[[BlockingPartitionContext, Wait], None]


async def run_and_cancel(context: Any, work: Work) -> None:
    """Run work in a handler thread, and cancel the call as soon as it waits."""
    thread, loop, waits = HandlerThread(context), asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        loop.call_soon_threadsafe(waits.set)
        wait_until_cancelled(thread.view)

    call = asyncio.create_task(thread.call(lambda: work(thread.view, wait)))
    await waits.wait()
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
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


@pytest.mark.real_time
async def test_a_thread_is_named_after_its_partition():
    """For profilers, debuggers and log formats."""
    names = []
    thread = HandlerThread(cast("Any", RecordingContext()))
    await thread.call(lambda: names.append(threading.current_thread().name))
    thread.end()

    assert names == ["eventproc-handler-7"]


async def test_a_position_and_its_state_are_read_together():
    """While the event loop reads progress, the handler's thread makes some."""
    setup = Setup()
    first, *others = (setup.hub.publish(b"", partition_id="0")[1] for _ in range(3))
    progress = InterruptedProgress()
    progress.admit([first, *others])
    progress.begin_call()
    progress.state = b"0"
    progress.done_through(first)
    progress.events = others
    seen = [progress.snapshot() for _ in others]

    assert [(p.sequence_number, p.state) for p in seen if p] == [(0, b"0"), (1, b"1")]


@pytest.mark.real_time
async def test_a_cancelled_call_changes_no_state():
    """Its events are delivered again with the state from before."""
    context = RecordingContext()

    def work(context: BlockingPartitionContext, wait: Wait) -> None:
        context.state = b"in time"
        wait()
        context.state = b"late"
        context.done(EVENT)
        with pytest.raises(CancelledError):
            context.checkpoint(EVENT)
        context.checkpoint()

    await run_and_cancel(context, work)

    assert context.state == b"in time"
    assert context.calls == [("checkpoint", None), ("checkpoint", None)]


@pytest.mark.real_time
async def test_without_state_events_done_by_a_cancelled_call_are_done():
    """So fewer events are delivered again."""
    context = RecordingContext()

    def work(context: BlockingPartitionContext, wait: Wait) -> None:
        wait()
        context.done(EVENT)
        context.checkpoint(EVENT)

    await run_and_cancel(context, work)

    assert context.calls == [("done", EVENT), ("checkpoint", EVENT)]


async def test_cancelling_waits_for_a_change_of_state_under_way():
    """A change that began in time is complete before the state is restored."""
    began, end = threading.Event(), threading.Event()
    states = []

    class Slow(RecordingContext):
        @property
        def state(self) -> bytes | None:
            return None

        @state.setter
        def state(self, value: bytes | None) -> None:
            if value is not None:
                began.set()
                end.wait(0.1)
                states.append(value)

    thread = HandlerThread(cast("Any", Slow()))
    calling = asyncio.ensure_future(thread.call(lambda: setattr(thread.view, "state", b"1")))
    await until(began.is_set)
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
        """Count. From the second event on, wait until the call is cancelled."""
        if context.sequence_number is not None:
            self.is_late = True
            wait_until_cancelled(context)
        context.state = str(int(context.state or b"0") + len(events)).encode()
        if not self.is_late:
            context.checkpoint(events[-1])


@pytest.mark.real_time
async def test_a_call_that_outlives_a_stop_does_not_change_the_state():
    """The next owner gets its events, and counts them then."""
    setup = Setup()
    handler = Late()
    setup.publish(1)
    stop_s = {**SHORT, "shutdown_timeout": timedelta(seconds=0.5)}
    async with setup.processor(lambda: handler, **stop_s):
        await until(lambda: setup.checkpointed() == 0)
        setup.publish(1)
        await until(lambda: handler.is_late)
    checkpoint = setup.checkpoint()

    assert (checkpoint.sequence_number, checkpoint.state) == (0, b"1")
