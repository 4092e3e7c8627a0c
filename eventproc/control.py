"""Where the store and the renewals live: apart from the handlers.

A handler that blocks its event loop must not delay a renewal. So the store belongs to a loop in a
thread of its own, and the processor's loop asks it from there. On virtual time, where nothing can
block, both are one loop.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


class Control(ABC):
    """A place in which coroutines of the control side run."""

    @abstractmethod
    async def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run it there and return its result here.

        A caller that is cancelled stops waiting, but what it started goes on to its end: a
        conditional write must not be torn off half-way, for then nobody knows its outcome.
        """

    @abstractmethod
    def tell(self, function: Callable[[], object]) -> None:
        """From there, have a function called on the processor's loop soon."""

    @abstractmethod
    async def close(self) -> None:
        """Cancel what still runs there, and end."""


class SharedLoop(Control):
    """The control side on the processor's own loop: for virtual time, and where threads are few."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[object]] = set()

    async def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run it as a task of its own, so that the caller's cancellation does not reach it."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Its waiter may be gone; then nobody else would look.

    def tell(self, function: Callable[[], object]) -> None:
        """Call it at the next turn of the loop."""
        self._loop.call_soon(function)

    async def close(self) -> None:
        """Cancel what still runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class LoopThread(Control):
    """The control side on a loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self._home = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._ended: asyncio.Future[None] = self._home.create_future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()
        self.tell(self._note_end)

    def _note_end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run it in the thread."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return await asyncio.shield(asyncio.wrap_future(future))

    def tell(self, function: Callable[[], object]) -> None:
        """Call it on the processor's loop, if that still runs."""
        with suppress(RuntimeError):  # It is closed; it may be so at any moment.
            self._home.call_soon_threadsafe(function)

    async def close(self) -> None:
        """Cancel what still runs in the thread, and end the thread."""
        await self.call(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.shield(self._ended)

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
