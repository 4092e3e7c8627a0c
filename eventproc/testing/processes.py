"""Processes on one virtual clock: each can be paused, resumed and killed, and has its own clock.

Whatever a process starts belongs to it, tasks and timers alike, because all of them inherit its
context. While it is paused nothing of it runs, and all that would have run is kept and runs when
it is resumed: as with SIGSTOP and SIGCONT. One that is killed is paused for ever.

What it takes for the time is its own. Its clock begins anywhere and runs fast or slow, and its
timers go by that. A second clock, for leases, goes on while the machine sleeps, and may jump.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar, TypeVarTuple

from eventproc.testing.virtual_time import Callback, VirtualTimeLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_current: ContextVar["Process | None"] = ContextVar("process", default=None)

ROUNDING_S = 1e-9
"""So that a timer never fires when its process's clock, in the last digit, is not there yet."""


AT_ONCE = float("-inf")
"""When what is no timer is due: a machine that slept delivers it as soon as it is awake."""


class _Guarded(Callback):
    """A call that waits while its process is paused."""

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
    """A virtual clock that asks the process of each callback whether it may run."""

    def time(self) -> float:
        """What the clock of the process that asks shows; the world's, if none does."""
        process = _current.get()
        return self.now_s if process is None else process.local_s(self.now_s)

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Run it at the next turn, or when its process is resumed."""
        if context is None:
            context = copy_context()
        process = context.get(_current)
        due = (
            Callback(callback, args, context, self.now_s)
            if process is None
            else _Guarded(process, callback, args, context, AT_ONCE)
        )
        self._due.append(due)
        return due

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run it when its process's clock shows that, or when its process is resumed."""
        if context is None:
            context = copy_context()
        process = context.get(_current)
        if process is None:
            return self._put(Callback(callback, args, context, when))
        return self._put(_Guarded(process, callback, args, context, process.world_s(when)))

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run it when its process's clock has gone on by so much."""
        if context is None:
            context = copy_context()
        process = context.get(_current)
        if process is None:
            return self._put(Callback(callback, args, context, self.now_s + delay))
        due_s = self.now_s + delay / process.rate
        if process.rate != 1:
            due_s += ROUNDING_S
        return self._put(_Guarded(process, callback, args, context, due_s))

    def again(self, callback: Callback) -> None:
        """Make a call that was kept."""
        if callback.due_s > self.now_s:
            self._put(callback)
        else:
            self._due.append(callback)


def running_loop() -> ProcessLoop:
    """The loop of whoever asks."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessLoop), "processes need a loop that knows them"
    return loop


class Wire:
    """Lets things happen that belong to no process, whoever asks for them."""

    def __init__(self) -> None:
        """Make it outside of every process."""
        self.loop = running_loop()
        self._context = copy_context()

    def after(self, seconds: float, function: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a function after some time of the world; at once, if that is none."""
        if seconds > 0:
            self.loop.call_at(self.loop.now_s + seconds, function, *args, context=self._context)
        else:
            self.loop.call_soon(function, *args, context=self._context)


class Process:
    """What would be one process of a fleet."""

    def __init__(
        self, name: str, *, began_s: float = 0.0, clock_s: float = 0.0, rate: float = 1.0
    ) -> None:
        """*clock_s* is what its clock showed when it began, and *rate* how fast that runs."""
        self.name = name
        self.rate = rate
        self.is_paused = False
        self.is_killed = False
        self.kept: list[_Guarded] = []
        """What would have run since the pause, in order."""

        self.step_count = 0
        """How often something of it ran: between two steps lies an await."""

        self.pause_count = 0
        self.disturbed_at_s = float("-inf")
        """When, in the world, it last ran on after it stood still, or its clock jumped."""

        self.break_at = 0
        self.on_break: Callable[[], None] = self.kill
        """What happens in place of the step with that number."""

        self._began_s, self._clock_s = began_s, clock_s
        self._asleep_s = self._jumped_s = 0.0

    def local_s(self, world_s: float) -> float:
        """What the clock of its timers shows at a time of the world."""
        return self._clock_s + (world_s - self._began_s) * self.rate - self._asleep_s

    def world_s(self, local_s: float) -> float:
        """When, in the world, the clock of its timers will show this."""
        passed_s = (local_s + self._asleep_s - self._clock_s) / self.rate
        world_s = self._began_s + passed_s
        return world_s if self.local_s(world_s) >= local_s else world_s + ROUNDING_S

    def boot_s(self) -> float:
        """What its other clock shows, which goes on while the machine sleeps."""
        return self.local_s(running_loop().now_s) + self._asleep_s + self._jumped_s

    def jump(self, seconds: float) -> None:
        """Set its other clock forward, without any reason."""
        self._jumped_s += seconds
        self.disturbed_at_s = running_loop().now_s

    def spawn(self, coroutine: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run a coroutine inside the process."""
        context = copy_context()
        context.run(_current.set, self)
        return running_loop().create_task(coroutine, context=context, name=self.name)

    def break_in(self, steps: int, then: Callable[[], None]) -> None:
        """Let something happen in place of the step that comes after so many others."""
        self.break_at = self.step_count + steps
        self.on_break = then

    def pause(self) -> None:
        """Let nothing of it run."""
        self.is_paused = True
        self.pause_count += 1

    def kill(self) -> None:
        """Let nothing of it run ever again."""
        self.is_paused = self.is_killed = True

    def resume(self) -> None:
        """Let it run on; all that came due meanwhile runs at once, in its order."""
        if not self.is_killed:
            self.disturbed_at_s = running_loop().now_s
            self.bury()

    def wake(self, slept_s: float) -> None:
        """Let it run on as after the machine slept: no time has passed for its timers."""
        fell_asleep_s = running_loop().now_s - slept_s
        self._asleep_s += slept_s * self.rate
        for callback in self.kept:
            if callback.due_s > fell_asleep_s:
                callback.due_s += slept_s
        self.resume()

    def bury(self) -> None:
        """Let even a killed one run to its end: when its world is over, to clean up."""
        self.is_paused = False
        kept, self.kept = self.kept, []
        loop = running_loop()
        for callback in kept:
            loop.again(callback)


def run_processes(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine that spawns processes to its end, on virtual time."""
    with asyncio.Runner(loop_factory=ProcessLoop) as runner:
        try:
            return runner.run(main)
        finally:
            runner.run(_end_all())


async def _end_all() -> None:
    """Cancel what is left, and what that starts in turn, until there is nothing."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left)
