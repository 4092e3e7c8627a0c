"""Where the callbacks of a client run: on the event loop, or in the thread that called."""

import asyncio
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from eventproc._base.tasks import to_the_end
from eventproc._base.threads import ping
from eventproc._delivery.handler import PartitionContext
from eventproc.compat._event_data import LazyEventData
from eventproc.compat._partition import Partition
from eventproc.models import ReceivedEvent

T = TypeVar("T")

SLICE_S: Final = 0.05
"""For how long the calling thread handles one partition while others wait."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Events for the callback that takes one at a time."""

    function: Callable[..., Any]
    context: object
    partition: Partition
    events: Sequence[ReceivedEvent]
    current: PartitionContext
    """Says whether the partition closes, so that its next owner gets the other events."""


class Caller(ABC):
    """Calls the program's functions, one at a time for each partition."""

    is_over = False
    """Whether the call of ``receive`` ends: no more events are handled. Set by any thread."""

    @abstractmethod
    async def call(self, function: Callable[..., Any], *args: object) -> None:
        """Call a function; return at its end, also if this call was cancelled."""

    @abstractmethod
    async def each(self, delivery: Delivery) -> None:
        """Call a function with one event after another, until the partition ends."""


class LoopCaller(Caller):
    """Calls coroutine functions on the event loop of the processor."""

    async def call(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        await function(*args)

    async def each(self, delivery: Delivery) -> None:
        partition, current = delivery.partition, delivery.current
        function, context = delivery.function, delivery.context
        for event in delivery.events:
            if current.is_ending or self.is_over:
                return
            partition.newest = data = LazyEventData(event)
            partition.delivered = event.sequence_number
            await function(context, data)


class ThreadCaller(Caller):
    """Calls functions in the thread that runs ``work``: one at a time for all partitions."""

    def __init__(self, *, slice_s: float = SLICE_S) -> None:
        """Handle each partition for *slice_s* while others wait."""
        self._slice_s = slice_s
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._waiting = set[asyncio.Future[Any]]()
        self._is_ended = False

    def end(self) -> None:
        """Make no more calls: those that wait end as if interrupted. Called on the event loop."""
        self._is_ended = True
        for done in self._waiting:
            if not done.done():
                done.set_result(None)

    def work(self, whole: Future[None]) -> None:
        """Make the calls until *whole* is done, and raise its error.

        Raises:
            KeyboardInterrupt: as in any function; call it again to end what *whole* does.
        """
        whole.add_done_callback(lambda _: self._calls.put(None))
        while (call := self._calls.get()) is not None or not whole.done():
            if call is not None:
                call()
        whole.result()

    async def call(self, function: Callable[..., Any], *args: object) -> None:
        await self._in_thread(partial(function, *args))

    async def each(self, delivery: Delivery) -> None:
        begin = 0
        partition, current, events = delivery.partition, delivery.current, delivery.events
        function, context = delivery.function, delivery.context

        def handle_some() -> int:
            until_s = time.monotonic() + self._slice_s
            for at in range(begin, len(events)):
                if current.is_ending or self.is_over:
                    return len(events)
                event = events[at]
                partition.newest = data = LazyEventData(event)
                partition.delivered = event.sequence_number
                function(context, data)
                if time.monotonic() > until_s:
                    return at + 1
            return len(events)

        while begin < len(events):
            begin = await self._in_thread(handle_some) or len(events)

    async def _in_thread(self, function: Callable[[], T]) -> T | None:
        """Call a function after those that wait; ``None`` if an interrupt ended it."""
        if self._is_ended:
            return None
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T | None] = loop.create_future()
        self._waiting.add(done)
        done.add_done_callback(self._waiting.discard)

        def finish(result: T | None, error: BaseException | None) -> None:
            if done.done():  # Nobody works any more.
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)

        def call() -> None:
            result: T | None = None
            error: Exception | None = None
            try:
                result = function()
            except StopIteration as raised:  # A future cannot have it.
                error = RuntimeError("the callback raised StopIteration")
                error.__cause__ = raised
            except Exception as raised:  # noqa: BLE001 - raised in the waiting task
                error = raised
            finally:
                ping(loop, partial(finish, result, error))

        self._calls.put(call)
        return await to_the_end(done)
