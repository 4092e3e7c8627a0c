"""Runs the store and the renewals on an event loop in a thread of their own.

A handler that blocks the processor's event loop must not delay a renewal. So the store belongs to
another loop, and the processor's loop calls it there. On virtual time, where nothing blocks, both
run on one loop.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import TypeVar

from eventproc._base.resource import require_process
from eventproc._base.tasks import end, retrieve_outcome
from eventproc._base.threads import LoopThread, end_others, ping
from eventproc.errors import ConfigurationError, StoreUnavailableError

_T = TypeVar("_T")


class StoreExecutor(ABC):
    """Runs coroutines of the store and of ownership."""

    _is_closed = False

    def __init__(self) -> None:
        self._process_id = os.getpid()

    async def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run it on the store's loop and return its result.

        If the caller is cancelled, the coroutine still runs to its end: the outcome of a
        conditional write that is cancelled half-way would not be known.

        Raises:
            ConfigurationError: the thread is one of another process.
            StoreUnavailableError: the executor is closed or closing: a handler still runs after the
                stop.
        """
        self._require_process(coroutine)
        if self._is_closed:
            coroutine.close()
            raise StoreUnavailableError("the processor has stopped, and its store is closed")
        return await asyncio.shield(self._start(coroutine))

    async def call_last(self, coroutine: Coroutine[object, object, None]) -> None:
        """Refuse further calls, cancel those that still run, and then run this one.

        A call may still run although its caller was cancelled, for example at the start.

        Raises:
            ConfigurationError: the thread is one of another process.
        """
        self._require_process(coroutine)
        self._is_closed = True
        await asyncio.shield(self._start(self._after_others(coroutine)))

    def _require_process(self, coroutine: Coroutine[object, object, object]) -> None:
        """Refuse a call in a child of a fork: there the thread does not run."""
        try:
            require_process("the processor's store", self._process_id)
        except ConfigurationError:
            coroutine.close()
            raise

    async def _after_others(self, coroutine: Coroutine[object, object, None]) -> None:
        try:
            await self._end_others()
        except BaseException:
            coroutine.close()
            raise
        await coroutine

    @abstractmethod
    async def _end_others(self) -> None:
        """On the store's loop: cancel all coroutines besides the one that calls this."""

    @abstractmethod
    def _start(self, coroutine: Coroutine[object, object, _T]) -> asyncio.Future[_T]:
        """Run it on the store's loop. Its outcome counts as retrieved: the caller may be gone."""

    @abstractmethod
    def call_soon(self, function: Callable[[], object]) -> None:
        """Have a function called on the processor's loop soon; called on the store's loop."""

    @abstractmethod
    def ping(self, answer: Callable[[], None]) -> None:
        """Have a function called on the store's loop soon; called from any thread."""

    @abstractmethod
    async def close(self) -> None:
        """Cancel the coroutines that still run, and end the thread if there is one."""


class InlineExecutor(StoreExecutor):
    """Runs them on the processor's own loop, for virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[object]] = set()

    def _start(self, coroutine: Coroutine[object, object, _T]) -> asyncio.Future[_T]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(retrieve_outcome)
        return task

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call it at the next turn of the loop."""
        self._loop.call_soon(function)

    def ping(self, answer: Callable[[], None]) -> None:
        """Call it at the next turn of the loop."""
        ping(self._loop, answer)

    async def close(self) -> None:
        """Cancel the tasks that still run."""
        self._is_closed = True
        await self._end_others()

    async def _end_others(self) -> None:
        await end([task for task in self._tasks if task is not asyncio.current_task()])


class ThreadExecutor(StoreExecutor):
    """Runs them on an event loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._home = asyncio.get_running_loop()
        self._thread = LoopThread(name)

    def _start(self, coroutine: Coroutine[object, object, _T]) -> asyncio.Future[_T]:
        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._thread.loop))
        future.add_done_callback(retrieve_outcome)
        return future

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call it on the processor's loop, if that still runs."""
        ping(self._home, function)

    def ping(self, answer: Callable[[], None]) -> None:
        """Call it on the loop of the thread, if that still runs."""
        self._thread.call_soon(answer)

    async def close(self) -> None:
        """Cancel the tasks that still run in the thread, and end the thread.

        If the caller gives up because a store blocks the thread, it ends when the store lets it.
        """
        self._is_closed = True  # A call accepted after the cancellation below would never end.
        await self._thread.end()

    async def _end_others(self) -> None:
        await end_others()
