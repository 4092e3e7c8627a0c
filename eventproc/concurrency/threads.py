"""Calls in threads whose outcome a coroutine waits for."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from eventproc.concurrency.tasks import retrieve_outcome


def call_and_settle(function: Callable[[], object], done: asyncio.Future[None]) -> bool:
    """Call a function in this thread, and settle a future of another thread's loop with its end.

    Returns whether that loop still runs.
    """
    error: BaseException | None = None
    try:
        function()
    except StopIteration as raised:  # A future refuses it; coroutines do the same as this.
        error = RuntimeError("the handler raised StopIteration")
        error.__cause__ = raised
    except BaseException as raised:  # noqa: BLE001 - raised in the waiting task
        error = raised
    try:
        done.get_loop().call_soon_threadsafe(_settle, done, error)
    except RuntimeError:  # The event loop is closed, so no task waits for this call.
        return False
    return True


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def in_own_thread(function: Callable[[], object], thread_name: str) -> asyncio.Future[None]:
    """Call a function in a daemon thread of its own, with the context variables of the caller."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    work = partial(call_and_settle, partial(copy_context().run, function), done)
    threading.Thread(target=work, name=thread_name, daemon=True).start()
    return done


async def to_its_end(
    call: asyncio.Future[None], on_cancel: Callable[[], None] = lambda: None
) -> None:
    """Wait for a call in a thread; if the waiting is cancelled, wait on until the call has ended.

    *on_cancel* asks the thread to return. A second cancellation leaves the thread alone.
    """
    call.add_done_callback(retrieve_outcome)
    try:
        await asyncio.shield(call)
    except asyncio.CancelledError:
        on_cancel()
        await asyncio.wait([call])
        raise
