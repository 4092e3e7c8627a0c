"""A batch of events that counts how many of its events were made."""

from collections.abc import Sequence
from typing import Any

from eventproc.columns import to_columns
from eventproc.models import EventBatch, ReceivedEvent


class CountingBatch(EventBatch):
    """A batch over plain events; it counts the reads of single events in ``made``."""

    def __init__(self, events: Sequence[ReceivedEvent], made: list[int] | None = None) -> None:
        self._events = tuple(events)
        self.made = [] if made is None else made
        """The sequence numbers of the events read, by this batch and its slices."""

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            assert index.step is None
            return CountingBatch(self._events[index], self.made)
        event = self._events[index]
        self.made.append(event.sequence_number)
        return event

    @property
    def body_byte_count(self) -> int:
        """The bytes of all bodies together."""
        return sum(len(event.body) for event in self._events)

    def columns(self, names: Sequence[str], partition_id: str) -> Any:
        """The columns of the events, which do not count as made."""
        return to_columns(self._events, names, partition_id)
