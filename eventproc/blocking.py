"""Ordinary functions behind an asynchronous face: one daemon thread for each handler."""

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
    """Runs a ``BlockingPartitionHandler`` in one thread of its own, one call at a time.

    A call that is cancelled goes on in its thread; the next call waits until it has ended, so the
    handler never sees two at once. The thread is a daemon: a call that never ends does not keep
    the process alive.
    """

    def __init__(self, handler: BlockingPartitionHandler) -> None:
        self._handler = handler
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def initialize(self, context: PartitionContext) -> None:
        """Start the thread, and let the handler get ready in it."""
        blocking = self._view(context)
        await self._call(lambda: self._handler.initialize(blocking))

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch in the thread."""
        blocking = self._view(context)
        await self._call(lambda: self._handler.process_events(blocking, events))

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Report an error in the thread."""
        blocking = self._view(context)
        await self._call(lambda: self._handler.process_error(blocking, error))

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Let the handler end in its thread, and end the thread."""
        blocking = self._view(context)
        try:
            await self._call(lambda: self._handler.close(blocking, reason))
        finally:
            self._calls.put(None)

    def _view(self, context: PartitionContext) -> BlockingPartitionContext:
        return BlockingPartitionContext(context, asyncio.get_running_loop())

    async def _call(self, function: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="eventproc-handler", daemon=True
            )
            self._thread.start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A copy of what belongs to the caller's context: a trace's span, for one.
        self._calls.put((partial(copy_context().run, function), done))
        await done

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, done = call
            if done.cancelled():
                continue
            error: BaseException | None = None
            try:
                function()
            except BaseException as raised:  # noqa: BLE001 - it is handed to the waiting task
                error = raised
            try:
                done.get_loop().call_soon_threadsafe(_settle, done, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
