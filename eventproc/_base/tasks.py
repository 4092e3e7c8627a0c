"""Tasks: several that run together, waits despite a cancellation, and calls of the user's code."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Sequence,
)
from contextlib import contextmanager, suppress
from contextvars import Context
from types import TracebackType
from typing import Any, Final, TypeVar

from eventproc.errors import HandlerAbortedError, HandlerCancelledError

_A = TypeVar("_A")
_T = TypeVar("_T")

PART_MAX: Final = 256
"""For thousands, the tasks would take more memory than their results."""

PASSES: Final = (Exception, KeyboardInterrupt, GeneratorExit)
"""What user's code may raise as it is; a ``GeneratorExit`` closes the coroutine that calls it."""


class CallEndedEarlyError(asyncio.CancelledError):
    """Raised between two events of a call when the partition closes.

    The partition's next owner handles the rest. It is a ``CancelledError``, so that a handler's
    ``except Exception`` does not catch it.
    """


def is_cancelled() -> bool:
    """Whether this task was cancelled; otherwise a ``CancelledError`` came from what it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


LOOP_KEPT_MAX_S: Final = 0.05
"""For how long a loop around the user's code may keep the event loop."""

LOOP_TURN_S: Final = 0.001
"""How long such a loop then waits: the event loop can take several steps of other tasks in it."""


class LoopTurns:
    """Gives the event loop a turn where the user's code blocks again and again without awaiting.

    Code that awaits something gives it turns anyway, and is not delayed.
    """

    __slots__ = ("_has_turned", "_loop", "clock", "due_s")

    def __init__(self) -> None:
        """Begin now, in the running loop."""
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time
        """The loop's clock."""

        self._begin()

    def _begin(self) -> None:
        self.due_s, self._has_turned = self.clock() + LOOP_KEPT_MAX_S, False
        """``take`` is to be called when the clock is past this time."""

        self._loop.call_soon(self._note_turn)

    def _note_turn(self) -> None:
        self._has_turned = True

    async def take(self) -> None:
        """Wait for a moment, unless the loop had a turn since the last call."""
        if not self._has_turned:
            await asyncio.sleep(LOOP_TURN_S)
        self._begin()


class users_code:  # noqa: N801 - used as ``contextlib.suppress`` is
    """A block that raises an ``Exception`` for whatever the user's code raises, as ``users_call``.

    One for each handler call, so not a generator.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Replace an error that is no ``Exception``; a cancellation by others passes."""
        if error is None or isinstance(error, PASSES):
            return
        if not isinstance(error, asyncio.CancelledError):
            raise HandlerAbortedError(error) from error
        if not is_cancelled():
            raise HandlerCancelledError(error) from error


async def users_call(
    call: Callable[[], Awaitable[object]], variables: Context | None = None
) -> None:
    """Await a coroutine of the user's code, in a task of its own, with these context variables.

    So code that cancels its own task is not taken for a cancellation of this one, and a
    ``SystemExit`` does not leave the event loop. A cancellation of this task cancels the call and
    waits for its end. It is raised even if the call ignored it and returned: what it was to do may
    be half done.

    Raises:
        HandlerCancelledError: the call raised ``CancelledError`` without a cancellation of this
            task.
        HandlerAbortedError: it raised something else that is no ``Exception``. Only a
            ``KeyboardInterrupt`` passes: it is the user's, and ends the program.
    """
    running = asyncio.get_running_loop().create_task(_error_of(call), context=variables)
    with users_code():
        try:
            error = await running
        except KeyboardInterrupt as interrupt:  # The call's task has raised it in the event loop.
            error = asyncio.CancelledError()
            error.__cause__ = interrupt
        if isinstance(error, Exception):
            raise error
        if is_cancelled():
            raise asyncio.CancelledError from error
        if isinstance(error, GeneratorExit):
            raise HandlerAbortedError(error) from error
        if error is not None:
            raise error


async def _error_of(call: Callable[[], Awaitable[object]]) -> BaseException | None:
    """Return what the call raises: a task whose result is a ``SystemExit`` ends its loop."""
    try:
        await call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code
        return error
    return None


class CancellableBlock:
    """The block of an ``async with`` that is cancelled when what it needs ends, as a task group's.

    A cancellation by others stays one.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._before = 0
        self._is_running = self._is_cancelled = False

    def enter(self) -> None:
        """Note that the block begins, in this task."""
        self._task = task = asyncio.current_task()
        self._before = 0 if task is None else task.cancelling()
        self._is_running, self._is_cancelled = True, False

    def cancel(self) -> None:
        """Cancel the block if it runs."""
        if self._is_running and not self._is_cancelled and self._task is not None:
            self._is_cancelled = self._task.cancel()

    async def leave(self, error: BaseException | None) -> bool:
        """Note that the block has ended; return whether ``cancel`` alone has ended it.

        Also ``True`` if it ended by itself before it was told. *error* is what it raised.
        """
        self._is_running = False
        if not self._is_cancelled or self._task is None:
            return False
        if not isinstance(error, asyncio.CancelledError):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # It ended before it was told.
        is_ours = self._task.uncancel() <= self._before
        return is_ours and (error is None or isinstance(error, asyncio.CancelledError))


async def together(*coroutines: Coroutine[Any, Any, _T]) -> list[_T]:
    """Run coroutines concurrently; return their results in order.

    As soon as one fails the others are cancelled, and its error is raised when they have ended.
    ``asyncio.gather`` would let the others continue, and would not retrieve their outcomes. A
    ``TaskGroup`` of Python 3.11 and 3.12.1 leaves a caller whose part has failed cancelled.
    """
    if not coroutines:
        return []
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await end(tasks)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return [task.result() for task in tasks]


async def parts_of(
    call: Callable[[_A], Coroutine[Any, Any, _T]], arguments: Sequence[_A]
) -> AsyncIterator[list[_T]]:
    """Yield what *call* returns for each argument, for ``PART_MAX`` of them at a time."""
    for begin in range(0, len(arguments), PART_MAX):
        yield await together(*map(call, arguments[begin : begin + PART_MAX]))


async def in_parts(
    call: Callable[[_A], Coroutine[Any, Any, _T]], arguments: Sequence[_A]
) -> list[_T]:
    """Return all that ``parts_of`` yields, as one list."""
    return [result async for part in parts_of(call, arguments) for result in part]


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


def is_loop_running() -> bool:
    """Whether the caller runs inside an event loop.

    The function exists so that callers need no ``except`` block around their work: each traceback
    from inside it would show this ``RuntimeError`` as its context.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
