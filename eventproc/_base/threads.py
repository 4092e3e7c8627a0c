"""Threads: a call in one while a coroutine waits, an event loop in one, and work beside a block."""

import asyncio
import gc
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from types import TracebackType
from typing import Any, Self, TypeVar

from eventproc._base.tasks import end, retrieve_outcome

T = TypeVar("T")


def in_own_thread(function: Callable[[], object], thread_name: str) -> asyncio.Future[None]:
    """Call a function in a daemon thread of its own, with the context variables of the caller."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    work = partial(call_into, partial(copy_context().run, function), done)
    threading.Thread(target=work, name=thread_name, daemon=True).start()
    return done


async def to_its_end(
    call: asyncio.Future[None], on_cancel: Callable[[], None] = lambda: None
) -> None:
    """Wait for a call in a thread, to its end even if this task is cancelled once.

    At the first cancellation *on_cancel* asks the thread to return. A second one is raised at once,
    while the thread continues.
    """
    call.add_done_callback(retrieve_outcome)
    try:
        await asyncio.shield(call)
    except asyncio.CancelledError:
        on_cancel()
        await asyncio.wait([call])
        raise


def call_into(function: Callable[[], object], done: asyncio.Future[None]) -> bool:
    """Call a function in this thread, and set its outcome in a future of another thread's loop.

    Returns whether that loop still runs.
    """
    error: BaseException | None = None
    try:
        function()
    # A future cannot have the first; coroutines convert it, too. No interrupt reaches this thread.
    except (StopIteration, KeyboardInterrupt) as raised:
        error = RuntimeError(f"the handler raised {type(raised).__name__}")
        error.__cause__ = raised
    except BaseException as raised:  # noqa: BLE001 - raised in the waiting task
        error = raised
    try:
        done.get_loop().call_soon_threadsafe(_set_outcome, done, error)
    except RuntimeError:  # The event loop is closed, so no task waits for this call.
        return False
    return True


def _set_outcome(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


class LoopThread:
    """An event loop that runs in a daemon thread until it is closed."""

    def __init__(self, thread_name: str) -> None:
        """Start the thread."""
        self.loop = asyncio.new_event_loop()
        """For ``run_coroutine_threadsafe``."""

        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # No waiter that is cancelled cancels it.
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()
        self._ended.set_result(None)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop; return its result or raise its error."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have a function called on the loop soon, if that still runs."""
        ping(self.loop, function)

    @property
    def is_closed(self) -> bool:
        """Whether the thread has ended."""
        return self.loop.is_closed()

    def close(self) -> None:
        """Cancel what still runs on the loop, and end the thread."""
        self._begin_close()
        self._thread.join()

    async def end(self) -> None:
        """Close it, and let another loop run meanwhile; if cancelled, the thread ends later."""
        self._begin_close()
        await asyncio.wrap_future(self._ended)

    def _begin_close(self) -> None:
        cancelled = asyncio.run_coroutine_threadsafe(self._cancel_all(), self.loop)
        cancelled.add_done_callback(lambda _: self.call_soon(self.loop.stop))

    async def _cancel_all(self) -> None:
        await end_others()
        await self.loop.shutdown_asyncgens()
        await asyncio.sleep(0)  # A closed transport closes its socket in the loop's next turn.


def ping(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Have a function called on a loop soon, if that still runs; called from any thread."""
    with suppress(RuntimeError):  # The loop is closed; that may happen at any moment.
        loop.call_soon_threadsafe(function)


async def end_others() -> None:
    """Cancel all tasks of the running loop besides the one that calls this, and await their end."""
    await end([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


class Background(ABC):
    """Base of classes that work in a daemon thread while their ``with`` block runs.

    Leaving the block does not wait for the thread.
    """

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._ended = threading.Event()
        """Set when the block ends."""

    def __enter__(self) -> Self:
        """Start the thread."""
        threading.Thread(target=self._run, name=self._thread_name, daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ask the thread to end."""
        self._ended.set()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ended`` is set. Called in the thread."""


@cache
def exclude_imports_from_collections() -> None:
    """Make the garbage collector ignore all objects that exist now. Later calls do nothing.

    Imported modules live as long as the process, and a full collection that visits them takes 30 to
    60 ms. PySpark runs one after every task.
    """
    gc.collect()
    gc.freeze()
