"""Calls functions in threads, while a coroutine waits for the outcome."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from eventproc.concurrency.tasks import retrieve_outcome


def call_and_settle(function: Callable[[], object], done: asyncio.Future[None]) -> bool:
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
