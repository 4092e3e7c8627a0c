"""An event loop whose clock jumps: hours of waiting pass in the time that the work takes.

Nothing outside may take part: no sockets, no subprocesses, and threads only while the clock is
held. As soon as every task waits, the clock jumps to the next timer. If there is none, everybody
waits for ever, and that is reported instead of waited for.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_T = TypeVar("_T")

THREAD_WAIT_MAX_S: Final = 10.0
"""How long, in real time, a held clock waits for a thread to say something."""


class DeadlockError(RuntimeError):
    """Every task waits for something that can never come."""


class _NoWaiting(selectors.BaseSelector):
    """A selector that never waits: it tells the loop's clock how long it would have."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.now_s = 0.0
        self.is_held: Callable[[], bool] = lambda: False

    def register(
        self, fileobj: "FileDescriptorLike", events: int, data: object = None
    ) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.is_held():
            return self._wait_for_thread(timeout)
        if timeout is None:
            raise DeadlockError("every task waits, and no timer is set that could wake one")
        self.now_s += max(timeout, 0.0)
        return []

    def _wait_for_thread(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        ready = self._selector.select(THREAD_WAIT_MAX_S if is_idle else 0)
        if is_idle and not ready:
            raise DeadlockError(
                f"a thread has not come back for {THREAD_WAIT_MAX_S:g} s of real time, during "
                "which the clock stood still"
            )
        return ready

    def get_map(self) -> Mapping["FileDescriptorLike", selectors.SelectorKey]:
        mapping: Mapping[FileDescriptorLike, selectors.SelectorKey] = self._selector.get_map()
        return mapping

    def close(self) -> None:
        self._selector.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Use it by ``run_virtual``; ``time()`` begins at zero."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._no_waiting.now_s

    def hold_while(self, is_held: Callable[[], bool]) -> None:
        """Let the clock stand still while this is so: threads work in real time."""
        self._no_waiting.is_held = is_held


def run_virtual(main: Coroutine[object, object, _T]) -> _T:
    """Run a coroutine to its end on virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
