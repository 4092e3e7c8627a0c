"""An event loop whose clock jumps: hours of waiting pass in the time that the work takes.

Nothing outside may take part: no sockets, no threads, no subprocesses. As soon as every task
waits, the clock jumps to the next timer. If there is none, everybody waits for ever, and that is
reported instead of waited for.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_T = TypeVar("_T")


class DeadlockError(RuntimeError):
    """Every task waits for something that can never come."""


class _NoWaiting(selectors.BaseSelector):
    """A selector that never waits: it tells the loop's clock how long it would have."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.now_s = 0.0

    def register(
        self, fileobj: "FileDescriptorLike", events: int, data: object = None
    ) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise DeadlockError("every task waits, and no timer is set that could wake one")
        self.now_s += max(timeout, 0.0)
        return []

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


def run_virtual(main: Coroutine[object, object, _T]) -> _T:
    """Run a coroutine to its end on virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
