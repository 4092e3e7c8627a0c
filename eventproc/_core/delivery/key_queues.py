"""Which events of one partition may be handled at once.

Rule: events of one key are handled in order, and never two at the same time.
"""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_E = TypeVar("_E")


class KeyQueues(Generic[_E]):
    """Events waiting for a lane, in a queue for each key; keys are served in order of readiness.

    A key is *ready* while it has waiting events, and none of its events is being handled.
    """

    def __init__(self) -> None:
        self._waiting_by_key: dict[Hashable, list[_E]] = {}
        """Of each key that is ready or being handled."""

        self._ready: deque[Hashable] = deque()

    def __bool__(self) -> bool:
        """Whether some key is ready."""
        return bool(self._ready)

    def add(self, key: Hashable, event: _E) -> None:
        """Append an event to the queue of its key.

        Raises:
            TypeError: the key is not hashable.
        """
        waiting = self._waiting_by_key.get(key)
        if waiting is None:
            self._waiting_by_key[key] = [event]
            self._ready.append(key)
        else:
            waiting.append(event)

    def take(self, events_max: int) -> tuple[Hashable, tuple[_E, ...]]:
        """Remove and return the oldest events of the key that has been ready for longest."""
        key = self._ready.popleft()
        waiting = self._waiting_by_key[key]
        self._waiting_by_key[key] = waiting[events_max:]
        return key, tuple(waiting[:events_max])

    def finish(self, key: Hashable) -> None:
        """Note that the events taken of this key are not being handled any more."""
        if self._waiting_by_key[key]:
            self._ready.append(key)
        else:
            del self._waiting_by_key[key]
