"""Buffers of receivers: they hold encoded messages, and return events."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from eventproc.models import ReceivedEvent
from eventproc.sources.eventhubs.direct_path.lazy_event import EventReader


class ReceiveBuffer(Protocol):
    """Encoded messages, first in, first out."""

    def __len__(self) -> int:
        """Return how many messages it holds."""

    def add(self, payloads: Sequence[bytes]) -> int:
        """Add messages; return their bytes."""

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        """Remove up to *count* messages; return their events, their number, and their bytes.

        Raises:
            SourceRejectedError: a message has no position in a partition, so it is not an event.
        """

    def clear(self) -> None:
        """Remove all messages."""


class EventBuffer:
    """A buffer that returns an object for each event."""

    def __init__(self) -> None:
        self._payloads: deque[bytes] = deque()
        self._events = EventReader()

    def __len__(self) -> int:
        return len(self._payloads)

    def add(self, payloads: Sequence[bytes]) -> int:
        self._payloads.extend(payloads)
        return sum(map(len, payloads))

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        take = self._payloads.popleft
        payloads = [take() for _ in range(min(count, len(self._payloads)))]
        return self._events.read(payloads), len(payloads), sum(map(len, payloads))

    def take_all(self) -> list[bytes]:
        """Remove all messages and return them, for another buffer."""
        payloads = list(self._payloads)
        self._payloads.clear()
        return payloads

    def clear(self) -> None:
        self._payloads.clear()
