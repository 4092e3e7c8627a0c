"""Which events of one partition may be handled at once.

Rule: events of one key are handled in order, and never two at the same time.
"""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_E = TypeVar("_E")


class KeyQueues(Generic[_E]):
    """Events waiting for a lane, in a queue for each key; keys are served in order of readiness.

    A key is *ready* while it has waiting events, and none of its events is *out*: being handled.
    """

    def __init__(self) -> None:
        self._queue_by_key: dict[Hashable, deque[_E]] = {}
        self._ready: deque[Hashable] = deque()
        self._out: set[Hashable] = set()

    def __bool__(self) -> bool:
        """Whether some key is ready."""
        return bool(self._ready)

    def add(self, key: Hashable, event: _E) -> None:
        """Append an event to the queue of its key."""
        queue = self._queue_by_key.get(key)
        if queue is not None:
            queue.append(event)
            return
        self._queue_by_key[key] = deque((event,))
        if key not in self._out:
            self._ready.append(key)

    def take(self, events_max: int) -> tuple[Hashable, list[_E]]:
        """Remove and return the oldest events of the key that has been ready for longest."""
        key = self._ready.popleft()
        queue = self._queue_by_key[key]
        events = [queue.popleft() for _ in range(min(events_max, len(queue)))]
        if not queue:
            del self._queue_by_key[key]
        self._out.add(key)
        return key, events

    def finish(self, key: Hashable) -> None:
        """Note that the events taken of this key are not being handled any more."""
        self._out.remove(key)
        if key in self._queue_by_key:
            self._ready.append(key)
