"""Runs handlers of ordinary functions in daemon threads: one for each partition or key lane."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from eventproc._base.tasks import to_the_end
from eventproc._base.threads import call_into
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.handler import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    PartitionContext,
    PartitionHandler,
)
from eventproc.models import CloseReason, ReceivedEvent

if TYPE_CHECKING:
    import pyarrow as pa

_Call = tuple[Callable[[], None], asyncio.Future[None]]


class ThreadedHandler(PartitionHandler):
    """Runs a ``BlockingPartitionHandler`` in threads: one for its partition, one for each lane.

    A cancelled call continues in its thread. The next call of the same lane waits until it has
    ended, and ``close`` waits for all calls, so the handler never has two calls for one key. The
    threads are daemons: a call that never ends does not keep the process alive.
    """

    def __init__(self, handler: BlockingPartitionHandler) -> None:
        self._handler = handler
        self._thread_by_context: dict[PartitionContext, HandlerThread] = {}

    @property
    def takes_columns(self) -> bool:
        """Whether its handler does; the columns are built in the thread."""
        return self._handler.takes_columns

    async def initialize(self, context: PartitionContext) -> None:
        """Call ``initialize`` in the partition's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.initialize(thread.view))

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Call ``process_events`` in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_events(thread.view, events))

    async def process_columns(self, context: PartitionContext, columns: "pa.RecordBatch") -> None:
        """Call ``process_columns`` in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_columns(thread.view, columns))

    async def on_idle(self, context: PartitionContext) -> None:
        """Call ``on_idle`` in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.on_idle(thread.view))

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Call ``process_error`` in the context's thread."""
        thread = self._thread(context)
        await self._call(thread, lambda: self._handler.process_error(thread.view, error))

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Wait for all calls under way, call ``close``, and end the threads."""
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

    def _seen(self, context: PartitionContext) -> PartitionContext:
        """Return what the handler's thread sees of a context."""
        return context

    def _threads(self) -> Sequence["HandlerThread"]:
        return tuple(self._thread_by_context.values())

    def _thread(self, context: PartitionContext) -> "HandlerThread":
        thread = self._thread_by_context.get(context)
        if thread is None:
            thread = self._thread_by_context[context] = HandlerThread(self._seen(context))
        return thread


class ThreadContext(BlockingPartitionContext):
    """The context in a handler's thread. Most of what a cancelled call does has no effect.

    When a call is cancelled, the state from before it is restored, and its events are delivered
    again with that state. So a cancelled call that still runs may not change the state (its events
    would be counted twice), nor report events as done (they would be missing from the state).
    Without state ``done`` still counts: then fewer events are delivered again.
    """

    def __init__(
        self,
        context: PartitionContext,
        loop: asyncio.AbstractEventLoop,
        is_cancelled: Callable[[], bool],
    ) -> None:
        super().__init__(context, loop, is_cancelled)
        self._changing = threading.Lock()
        self._has_state = self._has_transactions = False

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
        """Note that every event up to this one is handled, and that the state includes it."""
        with self._changing:
            if not self._is_undone:
                self._context.done(event)

    async def _checkpoint(self, event: ReceivedEvent | None) -> None:
        is_refused = event is not None and self._is_undone
        await self._context.checkpoint(None if is_refused else event)
        if is_refused:
            raise asyncio.CancelledError

    def _transaction(self, event: ReceivedEvent | None) -> AbstractAsyncContextManager[Any]:
        self._has_transactions = True
        context = cast(CallContext, self._context)
        return context.open_transaction(event, is_cancelled=lambda: self.is_cancelled)

    async def commit_ended(self) -> None:
        """Return when no commit of the call is under way any more."""
        if self._has_transactions:
            await cast(CallContext, self._context).commit_ended()

    def finish_change(self) -> None:
        """Return when a cancelled call cannot change anything any more.

        The call may have read ``is_cancelled`` before the cancellation, and act on it afterwards.
        """
        with self._changing:
            return

    @property
    def _is_undone(self) -> bool:
        return self._has_state and self.is_cancelled


class HandlerThread:
    """Calls functions in a daemon thread, one after the other."""

    def __init__(self, context: PartitionContext) -> None:
        self.view = ThreadContext(context, asyncio.get_running_loop(), self._is_cancelled)
        self._current: asyncio.Future[None] | None = None
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        name = f"eventproc-handler-{context.partition_id}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def call(self, function: Callable[[], None]) -> None:
        """Call the function after all earlier ones; return when it has, or raise its error."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The thread needs the caller's context variables, such as the span of a trace.
        self._calls.put((partial(copy_context().run, function), done))
        try:
            await done
        except asyncio.CancelledError:
            self.view.finish_change()
            # Its events are delivered again, unless they are committed.
            await to_the_end(asyncio.ensure_future(self.view.commit_ended()))
            raise

    def _is_cancelled(self) -> bool:
        return self._current is not None and self._current.cancelled()

    def end(self) -> None:
        """End the thread after the calls that are queued."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, done = call
            if done.cancelled():
                continue
            self._current = done
            if not call_into(function, done):
                return


def _nothing() -> None:
    """Queued to wait for the calls before it."""
