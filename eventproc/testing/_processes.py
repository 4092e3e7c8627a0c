"""Processes on one virtual clock: each can be paused, resumed and killed, and has its own clock.

Tasks and timers that a process starts belong to it, because they inherit its context. While it is
paused its callbacks are kept, and they run when it is resumed, as with SIGSTOP and SIGCONT. A
killed process is paused for ever.

Each process has its own clock, which starts at any value and runs fast or slow; its timers use that
clock. A second clock, for leases, continues while the machine sleeps, and may jump.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar, TypeVarTuple

from eventproc.testing._virtual_time import Callback, OverdueError, VirtualTimeLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_current: ContextVar["Process | None"] = ContextVar("process", default=None)

ROUNDING_S = 1e-9
"""Added to due times, so that rounding never lets a timer fire too early by its own clock."""


WITHIN_S = 20_000.0
"""Limit of a run in virtual seconds: many times what any test takes."""

END_WITHIN_S = 1000.0
"""Limit in virtual seconds for cancelled tasks to end: many times what a shutdown takes."""

AT_ONCE = float("-inf")
"""Due time of a callback without a timer: after a sleep of the machine it runs at once."""


class _Guarded(Callback):
    """A callback that waits while its process is paused."""

    __slots__ = ("process",)

    def __init__(
        self,
        process: "Process",
        function: Callable[..., object],
        arguments: tuple[object, ...],
        context: Context,
        due_s: float,
    ) -> None:
        self.function, self.arguments, self.context = function, arguments, context
        self.due_s, self.process = due_s, process

    def run(self) -> None:
        if self.function is None:
            return
        process = self.process
        process.step_count += 1
        if process.step_count == process.break_at:
            process.on_break()
        if process.is_paused:
            process.kept.append(self)
        else:
            self.context.run(self.function, *self.arguments)


class ProcessLoop(VirtualTimeLoop):
    """A loop on virtual time that runs each callback only while its process is not paused."""

    def time(self) -> float:
        """Return the time by the current process's clock; outside of a process, virtual time."""
        process = _current.get()
        return self.now_s if process is None else process.local_s(self.now_s)

    def _make_callback(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        context: Context | None,
        when_s: float | None = None,
    ) -> Callback:
        """Make a call of the current process, if any; *when_s* is by that process's clock."""
        if context is None:
            context = copy_context()
        process = context.get(_current)
        if process is None:
            return super()._make_callback(function, arguments, context, when_s)
        due_s = AT_ONCE if when_s is None else process.world_s(when_s)
        return _Guarded(process, function, arguments, context, due_s)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback after *delay* seconds of its process's clock."""
        if context is None:
            context = copy_context()
        process = context.get(_current)
        if process is None:
            return self.call_at(self.now_s + delay, callback, *args, context=context)
        due_s = self.now_s + delay / process.rate
        if process.rate != 1:
            due_s += ROUNDING_S
        return self._put(_Guarded(process, callback, args, context, due_s))

    def again(self, callback: Callback) -> None:
        """Schedule a callback that was kept during a pause."""
        if callback.due_s > self.now_s:
            self._put(callback)
        else:
            self._due.append(callback)


def running_loop() -> ProcessLoop:
    """Return the running loop, which must be a ``ProcessLoop``."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessLoop), "processes need a ProcessLoop"
    return loop


class Wire:
    """Schedules callbacks that belong to no process, even if a process requests them."""

    def __init__(self) -> None:
        """Create the wire; call it outside of every process."""
        self.loop = running_loop()
        self._context = copy_context()

    def after(self, seconds: float, function: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a function after this many virtual seconds; with 0, in the next turn."""
        if seconds > 0:
            self.loop.call_at(self.loop.now_s + seconds, function, *args, context=self._context)
        else:
            self.loop.call_soon(function, *args, context=self._context)


class Process:
    """A simulated process."""

    def __init__(
        self, name: str, *, began_s: float = 0.0, clock_s: float = 0.0, rate: float = 1.0
    ) -> None:
        """*clock_s* is its clock's value at *began_s*, and *rate* the clock's speed."""
        self.name = name
        self.rate = rate
        self.is_paused = False
        self.is_killed = False
        self.kept: list[_Guarded] = []
        """Callbacks that came due during the pause, in order."""

        self.step_count = 0
        """How many callbacks of the process have run: one for each step between two awaits."""

        self.pause_count = 0
        self.disturbed_at_s = float("-inf")
        """Virtual time of its last resume after a pause, or of its clock's last jump."""

        self.break_at = 0
        self.on_break: Callable[[], None] = self.kill
        """Called before the step with number ``break_at``."""

        self._began_s, self._clock_s = began_s, clock_s
        self._asleep_s = self._jumped_s = 0.0

    def local_s(self, world_s: float) -> float:
        """Convert virtual time to the clock of its timers."""
        return self._clock_s + (world_s - self._began_s) * self.rate - self._asleep_s

    def world_s(self, local_s: float) -> float:
        """Convert the clock of its timers to virtual time."""
        passed_s = (local_s + self._asleep_s - self._clock_s) / self.rate
        world_s = self._began_s + passed_s
        return world_s if self.local_s(world_s) >= local_s else world_s + ROUNDING_S

    def boot_s(self) -> float:
        """Return the time of its second clock, which continues while the machine sleeps."""
        return self.local_s(running_loop().now_s) + self._asleep_s + self._jumped_s

    def jump(self, seconds: float) -> None:
        """Set its second clock forward."""
        self._jumped_s += seconds
        self.disturbed_at_s = running_loop().now_s

    def spawn(self, coroutine: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run a coroutine inside the process."""
        context = copy_context()
        context.run(_current.set, self)
        return running_loop().create_task(coroutine, context=context, name=self.name)

    def break_in(self, steps: int, then: Callable[[], None]) -> None:
        """Call *then* before the step that comes after *steps* others."""
        self.break_at = self.step_count + steps
        self.on_break = then

    def pause(self) -> None:
        """Stop running its callbacks until ``resume``."""
        self.is_paused = True
        self.pause_count += 1

    def kill(self) -> None:
        """Stop running its callbacks for ever."""
        self.is_paused = self.is_killed = True

    def resume(self) -> None:
        """Run its callbacks again; those that came due meanwhile run at once, in order."""
        if not self.is_killed:
            self.disturbed_at_s = running_loop().now_s
            self.run_out()

    def wake(self, slept_s: float) -> None:
        """Resume as after a sleep of the machine: for its timers no time has passed."""
        fell_asleep_s = running_loop().now_s - slept_s
        self._asleep_s += slept_s * self.rate
        for callback in self.kept:
            if callback.due_s > fell_asleep_s:
                callback.due_s += slept_s
        self.resume()

    def run_out(self) -> None:
        """Run the kept callbacks, even of a killed process: to clean up at the end."""
        self.is_paused = False
        kept, self.kept = self.kept, []
        loop = running_loop()
        for callback in kept:
            loop.again(callback)


def run_processes(main: Coroutine[object, object, T], *, within_s: float = WITHIN_S) -> T:
    """Run a coroutine that spawns processes to its end, on virtual time.

    Raises:
        OverdueError: It takes longer than *within_s* virtual seconds, or a task that it left
            behind does not end after it was cancelled. The message names the waiting tasks.
    """
    runner = asyncio.Runner(loop_factory=ProcessLoop)
    loop = runner.get_loop()
    assert isinstance(loop, ProcessLoop), "made above"
    try:
        loop.ends_at_s = within_s
        try:
            return runner.run(main)
        finally:
            loop.ends_at_s = loop.now_s + END_WITHIN_S
            runner.run(_end_all())
    except OverdueError:
        loop.ends_at_s = AT_ONCE  # closing the runner cancels the same tasks again
        raise
    finally:
        with suppress(OverdueError):
            runner.close()


async def _end_all() -> None:
    """Cancel all tasks, and those that they start in turn, until none is left."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left)
