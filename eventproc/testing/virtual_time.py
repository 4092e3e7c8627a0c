"""An event loop whose clock jumps: hours of waiting pass in the time that the work takes.

Nothing outside may take part: no sockets, no subprocesses, and threads only while the clock is
held. As soon as every task waits, the clock jumps to the next timer. If there is none, everybody
waits for ever, and that is reported instead of waited for; and so is a task that never waits.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from heapq import heappop, heappush
from typing import Final, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

THREAD_WAIT_MAX_S: Final = 10.0
"""How long, in real time, a held clock waits for a thread to say something."""


class DeadlockError(RuntimeError):
    """Every task waits for something that can never come."""


class LivelockError(RuntimeError):
    """Something goes round and round, and no time passes."""


class Callback(asyncio.TimerHandle):
    """A call that the loop will make, unless it is cancelled before.

    It keeps nothing of asyncio's own handle, which asks for debug modes at every step.
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
        """Let it not be made."""
        self.function, self.arguments = None, ()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.function is None

    def when(self) -> float:
        """When it is due, in virtual seconds."""
        return self.due_s

    def run(self) -> None:
        """Make the call, if it is still wanted."""
        if self.function is not None:
            self.context.run(self.function, *self.arguments)


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """Use it by ``run_virtual``; ``time()`` begins at zero."""

    turns_max = 1_000_000
    """After so many turns at one moment nobody will ever wait."""

    _stopping: bool  # asyncio's own

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        """What ``time()`` tells."""

        self._due: deque[Callback] = deque()
        self._later: list[tuple[float, int, Callback]] = []
        self._timer_count = 0
        self._turn_count = 0
        self._is_held: Callable[[], bool] = lambda: False
        self._thread_called = threading.Event()

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.now_s

    def hold_while(self, is_held: Callable[[], bool]) -> None:
        """Let the clock stand still while this is so: threads work in real time."""
        self._is_held = is_held

    def call_soon(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Make the call at the next turn of the loop."""
        due = Callback(callback, args, context or copy_context(), self.now_s)
        self._due.append(due)
        return due

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Make the call soon, from a thread that the clock is held for."""
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
        """Make the call then."""
        return self._put(Callback(callback, args, context or copy_context(), when))

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Make the call after so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _put(self, callback: Callback) -> Callback:
        self._timer_count += 1
        heappush(self._later, (callback.due_s, self._timer_count, callback))
        return callback

    def _run_once(self) -> None:
        """One turn, which asyncio's ``run_forever`` asks for: what is due, and nothing newer."""
        due, later = self._due, self._later
        if not due and not self._stopping:
            self._jump()
            self._turn_count = 0
        self._turn_count += 1
        if self._turn_count > self.turns_max:
            self._turn_count = 0  # Who clears up after this has turns again.
            raise LivelockError(f"{self.turns_max} turns at {self.now_s} s, and nobody waits")
        while later and later[0][0] <= self.now_s:
            due.append(heappop(later)[2])
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
        """Let the clock go on to the next timer that somebody still waits for."""
        later = self._later
        while later and later[0][2].cancelled():
            heappop(later)
        if self._is_held() and not (later and later[0][0] <= self.now_s):
            self._wait_for_thread()
            return
        if not later:
            raise DeadlockError("every task waits, and no timer is set that could wake one")
        self.now_s = max(self.now_s, later[0][0])

    def _wait_for_thread(self) -> None:
        if not self._thread_called.wait(THREAD_WAIT_MAX_S):
            raise DeadlockError(
                f"a thread has not come back for {THREAD_WAIT_MAX_S:g} s of real time, during "
                "which the clock stood still"
            )
        self._thread_called.clear()

    def close(self) -> None:
        """Forget what was never called."""
        self._due.clear()
        self._later.clear()
        super().close()


def run_virtual(main: Coroutine[object, object, _T]) -> _T:
    """Run a coroutine to its end on virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
