"""An event loop on virtual time: hours of waiting pass in the time that the work takes.

As soon as every task waits, the clock jumps to the next timer. If there is none, the loop raises
``DeadlockError`` instead of waiting for ever; if tasks run without ever waiting, it raises
``LivelockError``. Sockets and subprocesses do not work on it, and threads only while ``hold_while``
stops the clock.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from math import inf
from types import CoroutineType
from typing import Any, Final, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

THREAD_WAIT_MAX_S: Final = 10.0
"""How long, in real seconds, a stopped clock waits for a call from a thread."""


class DeadlockError(RuntimeError):
    """Every task waits, and no timer can wake one."""


class LivelockError(RuntimeError):
    """Tasks run again and again without any time passing."""


class OverdueError(RuntimeError):
    """Tasks did not end in time; the message names each of them and where it waits."""


class Callback(asyncio.TimerHandle):
    """A scheduled call, which can be cancelled.

    It replaces asyncio's own handle, whose checks for debug mode cost time at every step.
    """

    __slots__ = ("arguments", "context", "due_s", "function")

    def __init__(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        context: Context,
        due_s: float,
    ) -> None:
        self.function: Callable[..., object] | None = function
        self.arguments = arguments
        self.context = context
        self.due_s = due_s

    def __repr__(self) -> str:
        return f"<Callback {self.function!r} at {self.due_s}>"

    def cancel(self) -> None:
        """Cancel the call."""
        self.function, self.arguments = None, ()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.function is None

    def when(self) -> float:
        """Return when it is due, in virtual seconds."""
        return self.due_s

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        if self.function is not None:
            self.context.run(self.function, *self.arguments)


class NumberedTask(asyncio.Task[_T]):
    """A task whose hash is its number, so that a set of tasks has the same order in every run.

    asyncio keeps the tasks of a group in a set and cancels them in its order, which otherwise
    depends on their memory addresses.
    """

    def __init__(
        self,
        number: int,
        coroutine: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        loop: asyncio.AbstractEventLoop,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> None:
        self._number = number  # Before asyncio puts the task into a set.
        super().__init__(coroutine, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """An event loop on virtual time, which begins at zero. Usually made by ``run_virtual``."""

    turns_max = 1_000_000
    """Turns without any time passing after which ``LivelockError`` is raised."""

    _stopping: bool  # asyncio's own

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        """Virtual time in seconds, as ``time()`` returns it."""

        self._due: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._timer_count = 0
        self._turn_count = 0
        self.ends_at_s = inf
        """When the clock would pass this time, ``OverdueError`` is raised."""

        numbers = count()
        self.set_task_factory(
            lambda loop, coroutine, **options: NumberedTask(
                next(numbers), coroutine, loop, **options
            )
        )
        self._is_held: Callable[[], bool] = lambda: False
        self._thread_called = threading.Event()

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self.now_s

    def hold_while(self, is_held: Callable[[], bool]) -> None:
        """Stop the clock while *is_held* returns true, because threads work in real time."""
        self._is_held = is_held

    def call_soon(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a call for the next turn of the loop."""
        due = self._make_callback(callback, args, context)
        self._due.append(due)
        return due

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a call from a thread for which the clock is stopped."""
        due = self.call_soon(callback, *args, context=context)
        self._thread_called.set()
        return due

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a call for a virtual time."""
        return self._put(self._make_callback(callback, args, context, when))

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a call after this many virtual seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _make_callback(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        context: Context | None,
        when_s: float | None = None,
    ) -> Callback:
        """Make a call for this time, or without one for the next turn."""
        due_s = self.now_s if when_s is None else when_s
        return Callback(function, arguments, copy_context() if context is None else context, due_s)

    def _put(self, callback: Callback) -> Callback:
        self._timer_count += 1
        heappush(self._timers, (callback.due_s, self._timer_count, callback))
        return callback

    def _run_once(self) -> None:
        """Run one turn of ``run_forever``: the calls that are due, not those that they schedule."""
        due, timers = self._due, self._timers
        if not due and not self._stopping:
            self._jump()
            self._turn_count = 0
        self._turn_count += 1
        if self._turn_count > self.turns_max:
            self._turn_count = 0  # so that clean-up code can run
            raise LivelockError(f"{self.turns_max} turns at {self.now_s} s without any wait")
        while timers and timers[0][0] <= self.now_s:
            due.append(heappop(timers)[2])
        for _ in range(len(due)):
            callback = due.popleft()
            try:
                callback.run()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio's own loop does
                self.call_exception_handler(
                    {"message": f"Exception in callback {callback!r}", "exception": error}
                )

    def _jump(self) -> None:
        """Set the clock to the next timer that is not cancelled."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        if self._is_held() and not (timers and timers[0][0] <= self.now_s):
            self._wait_for_thread()
            return
        if not timers:
            raise DeadlockError(
                f"every task waits, and no timer is set that could wake one: {self._waits()}"
            )
        if timers[0][0] > self.ends_at_s:
            raise OverdueError(f"not over after {self.now_s:g} s, waiting: {self._waits()}")
        self.now_s = max(self.now_s, timers[0][0])

    def _waits(self) -> str:
        """Describe every task that has not ended, and where it waits."""
        return "; ".join(sorted(map(described, asyncio.all_tasks(self)))) or "no task"

    def _wait_for_thread(self) -> None:
        if not self._thread_called.wait(THREAD_WAIT_MAX_S):
            raise DeadlockError(
                f"a thread has not come back for {THREAD_WAIT_MAX_S:g} s of real time, during "
                "which the clock stood still"
            )
        self._thread_called.clear()

    def close(self) -> None:
        """Discard all scheduled calls."""
        self._due.clear()
        self._timers.clear()
        super().close()


def described(task: asyncio.Task[Any]) -> str:
    """Return a task's name and its stack of coroutines, outermost first."""
    calls = []
    coroutine: object = task.get_coro()
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        calls.append(f"{coroutine.cr_code.co_qualname}:{coroutine.cr_frame.f_lineno}")
        coroutine = coroutine.cr_await
    return f"{task.get_name()} in {' > '.join(calls)}"


def run_virtual(main: Coroutine[object, object, _T]) -> _T:
    """Run a coroutine to its end on virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
