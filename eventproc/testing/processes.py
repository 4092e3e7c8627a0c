"""Processes on one virtual clock: what runs in one can be paused, resumed and killed.

Whatever a process starts belongs to it, tasks and timers alike, because all of them inherit its
context. While it is paused nothing of it runs, and all that would have run is kept and runs when
it is resumed: as with SIGSTOP and SIGCONT. One that is killed is paused for ever.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar, TypeVarTuple

from eventproc.testing.virtual_time import VirtualTimeLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_current: ContextVar["Process | None"] = ContextVar("process", default=None)


class _Guarded:
    """A callback that waits while its process is paused, and respects its own cancellation."""

    __slots__ = ("args", "callback", "context", "handle", "process")

    def __init__(
        self,
        process: "Process",
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context | None,
    ) -> None:
        self.process = process
        self.callback = callback
        self.args = args
        self.context = context or copy_context()
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if self.handle is not None and self.handle.cancelled():
            return
        if self.process.is_paused:
            self.process.kept.append(self)
        else:
            self.callback(*self.args)


class ProcessLoop(VirtualTimeLoop):
    """A virtual clock that asks the process of each callback whether it may run."""

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Run it at the next turn, or when its process is resumed."""
        guarded = self._guard(callback, args, context)
        if guarded is None:
            return super().call_soon(callback, *args, context=context)
        guarded.handle = super().call_soon(guarded, context=context)
        return guarded.handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run it then, or when its process is resumed."""
        guarded = self._guard(callback, args, context)
        if guarded is None:
            return super().call_at(when, callback, *args, context=context)
        guarded.handle = handle = super().call_at(when, guarded, context=context)
        return handle

    @staticmethod
    def _guard(
        callback: Callable[..., object], args: tuple[object, ...], context: Context | None
    ) -> _Guarded | None:
        process = _current.get() if context is None else context.get(_current)
        return None if process is None else _Guarded(process, callback, args, context)


class Process:
    """What would be one process of a fleet."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_paused = False
        self.is_killed = False
        self.kept: list[_Guarded] = []
        """What would have run since the pause, in order."""

    def spawn(self, coroutine: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run a coroutine inside the process."""
        context = copy_context()
        context.run(_current.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context, name=self.name)

    def pause(self) -> None:
        """Let nothing of it run."""
        self.is_paused = True

    def kill(self) -> None:
        """Let nothing of it run ever again."""
        self.is_paused = self.is_killed = True

    def resume(self) -> None:
        """Let it run on; all that came due meanwhile runs at once, in its order."""
        if not self.is_killed:
            self.bury()

    def bury(self) -> None:
        """Let even a killed one run to its end: when its world is over, to clean up."""
        self.is_paused = False
        loop = asyncio.get_running_loop()
        kept, self.kept = self.kept, []
        for guarded in kept:
            loop.call_soon(_call_if_wanted(guarded), context=guarded.context)


def _call_if_wanted(guarded: _Guarded) -> Callable[[], None]:
    def call() -> None:
        if guarded.handle is None or not guarded.handle.cancelled():
            guarded.callback(*guarded.args)

    return call


def run_processes(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine that spawns processes to its end, on virtual time."""
    with asyncio.Runner(loop_factory=ProcessLoop) as runner:
        return runner.run(main)
