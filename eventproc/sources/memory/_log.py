"""The log of one partition of a hub in memory: append, search, read and trim."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from eventproc.errors import SourceRejectedError
from eventproc.models import (
    REPLAYED_FROM,
    REPLAYED_FROM_PROPERTY,
    EventPosition,
    LastEnqueued,
    PartitionProperties,
    ReceivedEvent,
)

_OFFSET_OF_FIRST: Final = 4096
"""Not zero, so that a test fails at the first event if it uses an offset as a sequence number."""

_OFFSET_PER_EVENT: Final = 56
"""Added to the size of a body to get the next offset, so that no two offsets are the same."""


class MemoryLog:
    """Events of a partition. Sequence numbers rise by one, offsets by the size of the event."""

    def __init__(self, partition_id: str) -> None:
        self._partition_id = partition_id
        self._events: list[ReceivedEvent] = []
        self._offsets: list[int] = []
        self._times: list[datetime] = []
        self._next_offset = _OFFSET_OF_FIRST
        self.first = 0
        """The sequence number of the oldest event, or of the next one if the log is empty."""

        self.last: LastEnqueued | None = None
        """The newest event that was ever appended; it may have been trimmed since."""

    @property
    def end(self) -> int:
        """The sequence number of the next event."""
        return self.first + len(self._events)

    def append(
        self,
        body: bytes,
        *,
        enqueued_time: datetime,
        partition_key: str | None,
        properties: Mapping[str, object],
    ) -> ReceivedEvent:
        """Append an event; return the event that receivers will get."""
        event = ReceivedEvent(
            body=body,
            sequence_number=self.end,
            offset=str(self._next_offset),
            enqueued_time=enqueued_time,
            partition_key=partition_key,
            properties={n: v for n, v in properties.items() if n != REPLAYED_FROM_PROPERTY},
            system_properties=(
                {REPLAYED_FROM: properties[REPLAYED_FROM_PROPERTY]}
                if REPLAYED_FROM_PROPERTY in properties
                else {}
            ),
        )
        self._events.append(event)
        self._offsets.append(self._next_offset)
        self._times.append(enqueued_time)
        self._next_offset += _OFFSET_PER_EVENT + len(body)
        self.last = LastEnqueued(
            sequence_number=event.sequence_number,
            offset=event.offset,
            enqueued_time=event.enqueued_time,
        )
        return event

    def read(self, sequence_number: int, events_max: int | None = None) -> Sequence[ReceivedEvent]:
        """Return the events from this number on, or from the oldest one if that is later."""
        start = max(sequence_number - self.first, 0)
        return self._events[start : None if events_max is None else start + events_max]

    def trim(self, before: int) -> None:
        """Delete the events below this sequence number."""
        count = min(max(before - self.first, 0), len(self._events))
        del self._events[:count], self._offsets[:count], self._times[:count]
        self.first += count

    def properties(self) -> PartitionProperties:
        """Return where the partition begins and ends."""
        return PartitionProperties(
            partition_id=self._partition_id,
            beginning_sequence_number=self.first,
            last_enqueued_sequence_number=self.last.sequence_number if self.last else -1,
            last_enqueued_offset=self.last.offset if self.last else "-1",
            last_enqueued_time=self.last.enqueued_time if self.last else None,
            is_empty=not self._events,
        )

    def find(self, position: EventPosition) -> int:
        """Return the sequence number to begin with.

        A position before the oldest retained event means that event. A position beyond the end is
        refused, as by Event Hubs: it belongs to another hub, or to this one before it was deleted
        and created again.

        Raises:
            SourceRejectedError: the position cannot be one of this partition.
        """
        search = bisect_left if position.is_inclusive else bisect_right
        if position.is_latest:
            return self.end
        if position.offset is None and position.sequence_number is not None:
            begin = position.sequence_number + (not position.is_inclusive)
            if begin > self.end:
                raise self._beyond_end("sequence number", str(position.sequence_number))
            return begin
        if position.enqueued_time is not None:
            return self.first + search(self._times, position.enqueued_time)
        if position.offset is None or position.offset == "-1":
            return self.first
        if not position.offset.isdecimal():
            raise SourceRejectedError(
                f"partition {self._partition_id!r} never had an offset {position.offset!r}"
            )
        offset = int(position.offset)
        if self.last is None or offset > int(self.last.offset):
            raise self._beyond_end("offset", position.offset)
        return self.first + search(self._offsets, offset)

    def _beyond_end(self, kind: str, value: str) -> SourceRejectedError:
        newest = "no event was published" if self.last is None else f"the newest is {self.last}"
        return SourceRejectedError(
            f"partition {self._partition_id!r} never had {kind} {value}: {newest}. The checkpoint "
            "belongs to another hub, or to this one before it was created again; reset it"
        )
