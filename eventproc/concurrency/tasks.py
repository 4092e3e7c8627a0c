"""Run and cancel several tasks together, and wait for tasks despite a cancellation."""

import asyncio
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from eventproc.errors import HandlerCancelledError

_T = TypeVar("_T")


class CallEndedEarlyError(asyncio.CancelledError):
    """Raised between two events of a call when the partition closes.

    The partition's next owner handles the rest. It is a ``CancelledError``, so that a handler's
    ``except Exception`` does not catch it.
    """


def is_cancelled() -> bool:
    """Whether this task was cancelled; otherwise a ``CancelledError`` came from what it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def users_code() -> Iterator[None]:
    """Raise ``HandlerCancelledError`` for a ``CancelledError`` that did not cancel this task."""
    try:
        yield
    except asyncio.CancelledError as cancellation:
        if is_cancelled():
            raise
        raise HandlerCancelledError(cancellation) from cancellation


async def together(*coroutines: Coroutine[Any, Any, _T]) -> list[_T]:
    """Run coroutines concurrently; return their results in order.

    As soon as one fails the others are cancelled, and its error is raised when they have ended.
    ``asyncio.gather`` would let the others continue, and would not retrieve their outcomes.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        first = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise first


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks and return when all have ended, by success, failure or cancellation.

    Their outcomes are discarded: the caller has its own result or error already.
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        retrieve_outcome(task)


async def ended(running: asyncio.Future[Any]) -> None:
    """Return when *running* has ended. Ignore its outcome, and cancellations of this task."""
    with suppress(BaseException):
        await to_the_end(running)


async def to_the_end(running: asyncio.Future[_T]) -> _T:
    """Wait until *running* has ended, even if this task is cancelled; only then raise that."""
    cancellation: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        retrieve_outcome(running)
        raise cancellation
    return running.result()


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raise ``CancelledError`` after a block that suppressed a cancellation of this task.

    Use it around code of others that suppresses cancellations: a loop around that code would
    continue, and the caller that cancelled the task would wait for ever. ``asyncio.wait_for`` of
    Python 3.11, which Azure's client uses, returns its result if that arrives together with the
    cancellation.
    """
    task = asyncio.current_task()
    assert task is not None, "only inside a task"
    before = task.cancelling()
    try:
        yield
    except Exception as error:
        if task.cancelling() > before:
            raise asyncio.CancelledError from error
        raise
    if task.cancelling() > before:
        raise asyncio.CancelledError


def retrieve_outcome(done: asyncio.Future[Any]) -> None:
    """Retrieve an outcome, so that asyncio does not log a failure as never retrieved.

    Add it as a callback to a future that continues after its caller was cancelled.
    """
    if not done.cancelled():
        done.exception()
