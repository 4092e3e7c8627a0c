"""Ordinary functions behind an asynchronous face: a daemon thread for each context of a handler."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial

from eventproc.handler import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    PartitionContext,
    PartitionHandler,
)
from eventproc.models import CloseReason, ReceivedEvent

_Call = tuple[Callable[[], None], asyncio.Future[None]]


class ThreadedHandler(PartitionHandler):
    """Runs a ``BlockingPartitionHandler`` in threads: one for its partition, one for each lane.

    A call that is cancelled goes on in its thread; the next call of the same lane waits until it
    has ended, and ``close`` waits for all of them, so the handler never sees two calls for the same
    key. The threads are daemons: a call that never ends does not keep the process alive.
    """

    def __init__(self, handler: BlockingPartitionHandler) -> None:
        self._handler = handler
        self._thread_by_context: dict[PartitionContext, HandlerThread] = {}

    async def initialize(self, context: PartitionContext) -> None:
        """Let the handler get ready in the partition's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.initialize(thread.view))

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_events(thread.view, events))

    async def process_idle(self, context: PartitionContext) -> None:
        """Tell that nothing came, in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_idle(thread.view))

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Report an error in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_error(thread.view, error))

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Let the handler end when no call is under way any more, and end the threads."""
        thread = self._thread(context)
        try:
            await asyncio.gather(*(self._call(t, _nothing) for t in self._threads()))
            await self._call(thread, lambda: self._handler.close(thread.view, reason))
        finally:
            for started in self._threads():
                started.end()
            self._thread_by_context.clear()

    async def _call(self, thread: "HandlerThread", function: Callable[[], None]) -> None:
        await thread.call(function)

    def _view(self, context: PartitionContext) -> "ThreadContext":
        return ThreadContext(context, asyncio.get_running_loop())

    def _threads(self) -> Sequence["HandlerThread"]:
        return tuple(self._thread_by_context.values())

    def _thread(self, context: PartitionContext) -> "HandlerThread":
        thread = self._thread_by_context.get(context)
        if thread is None:
            thread = self._thread_by_context[context] = HandlerThread(self._view(context))
        return thread


class ThreadContext(BlockingPartitionContext):
    """What a handler's thread sees, and what of a cancelled call still counts.

    The state was taken back when the call was cut off, and its events come again to that state. So
    the call changes it no more, or they would be counted twice; nor are they done, or they would be
    missing in it. Of a handler that keeps no state they are: then fewer come again.
    """

    def __init__(self, context: PartitionContext, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(context, loop)
        self._changing = threading.Lock()
        self._has_state = False

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""
        return self._context.state

    @state.setter
    def state(self, value: bytes | None) -> None:
        with self._changing:
            self._has_state = True
            if not self.is_cancelled:
                self._context.state = value

    def done(self, event: ReceivedEvent) -> None:
        """Everything up to the event is handled, and the state includes it."""
        with self._changing:
            if not self._is_taken_back:
                self._context.done(event)

    async def _checkpoint(self, event: ReceivedEvent | None) -> None:
        is_refused = event is not None and self._is_taken_back
        await self._context.checkpoint(None if is_refused else event)
        if is_refused:
            raise asyncio.CancelledError

    def settle(self) -> None:
        """Return when a cancelled call has changed the last that it will.

        It may have looked whether it is cancelled before it was, and be about to act on that.
        """
        with self._changing:
            return

    @property
    def _is_taken_back(self) -> bool:
        return self._has_state and self.is_cancelled


class HandlerThread:
    """Calls functions in a daemon thread, one after the other."""

    def __init__(self, view: ThreadContext) -> None:
        self.view = view
        self._current: asyncio.Future[None] | None = None
        view.watch(lambda: self._current is not None and self._current.cancelled())
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="eventproc-handler", daemon=True).start()

    async def call(self, function: Callable[[], None]) -> None:
        """Return when the function has, after all those before it; raise what it raises."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A copy of what belongs to the caller's context: a trace's span, for one.
        self._calls.put((partial(copy_context().run, function), done))
        try:
            await done
        except asyncio.CancelledError:
            self.view.settle()
            raise

    def end(self) -> None:
        """End the thread after what it was given to call."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, done = call
            if done.cancelled():
                continue
            self._current = done
            error: BaseException | None = None
            try:
                function()
            except StopIteration as raised:  # No future takes it; coroutines turn it into this.
                error = RuntimeError("the handler raised StopIteration")
                error.__cause__ = raised
            except BaseException as raised:  # noqa: BLE001 - it is handed to the waiting task
                error = raised
            try:
                done.get_loop().call_soon_threadsafe(_settle, done, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _nothing() -> None:
    """Done when its turn comes: then what was before it is done."""


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
