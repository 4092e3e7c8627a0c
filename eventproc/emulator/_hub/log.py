"""One partition's events: an append-only log whose oldest events expire. Pure.

Rule 1: sequence numbers rise by one and are never reused, even after events expired or a restart.
The log of a compacted hub lacks those of superseded events.
Rule 2: offsets rise by the size of the stored event, so they soon differ from sequence numbers:
code that confuses the two fails here rather than in production.
Rule 3: enqueued times never go back, even if the clock does.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Final, TypeAlias

from eventproc._base.settings import Span, Within, check_settings
from eventproc.emulator._amqp.message import EventDraft, StoredEvent, store
from eventproc.emulator._amqp.refusal import ARGUMENT_ERROR, RefusedError, position_beyond_end


class PositionKind(StrEnum):
    """What a start position refers to."""

    OFFSET = "x-opt-offset"
    SEQUENCE_NUMBER = "x-opt-sequence-number"
    ENQUEUED_TIME = "x-opt-enqueued-time"
    LATEST = "@latest"


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where a receiver begins: after ``value``, or at it if ``inclusive``.

    A time is in milliseconds since 1970. ``LATEST`` means events from now on; its value is unused.
    """

    kind: PositionKind
    value: int
    inclusive: bool = False


EARLIEST: Final = StartPosition(PositionKind.OFFSET, -1)

LATEST: Final = StartPosition(PositionKind.LATEST, 0)


NEVER_MS: Final = -62_135_596_800_000
"""The year 1 in milliseconds: the service's last enqueued time of an empty partition."""

_OFFSET: Final[Callable[[StoredEvent], int]] = attrgetter("offset")

_NUMBER: Final[Callable[[StoredEvent], int]] = attrgetter("sequence_number")

_ENQUEUED: Final[Callable[[StoredEvent], int]] = attrgetter("enqueued_ms")


Limit: TypeAlias = Annotated[int, Within(least=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What a partition keeps: the newest events within every limit that is set."""

    events_max: Limit | None = None
    """Events in one partition."""

    bytes_max: Limit | None = None
    """Bytes of encoded events in one partition. The newest event stays, whatever its size."""

    age_max: Span | None = None
    """Age since the enqueued time. The service's standard tier allows one hour to seven days."""

    def __post_init__(self) -> None:
        """Check that the limits keep at least one event."""
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProperties:
    """The values for ``get_partition_properties`` and the runtime metric."""

    first_sequence_number: int
    last_sequence_number: int
    last_offset: int
    last_enqueued_ms: int
    is_empty: bool


class PartitionLog:
    """The events of one partition, oldest first."""

    def __init__(self, next_sequence_number: int = 0, next_offset: int = 0) -> None:
        self._events: list[StoredEvent] = []
        self._dead = 0  # events at the head of the list that have expired
        self.next_sequence_number = next_sequence_number
        """Sequence number that the next event will get."""

        self.next_offset = next_offset
        """Offset that the next event will get."""

        self._last_offset = next_offset - 1
        """Of the newest event; after a restart without events, at least that."""

        self._last_enqueued_ms = NEVER_MS
        self.byte_count = 0
        """Bytes of the encoded events that are kept."""

        self._newest_by_key: dict[str, int] = {}
        self._compacted_to = next_sequence_number

    def __len__(self) -> int:
        return len(self._events) - self._dead

    @property
    def first_sequence_number(self) -> int:
        """Sequence number of the oldest event; of the next event if the log is empty."""
        return self._number_at(self._dead)

    def properties(self) -> PartitionProperties:
        """Return the log's properties."""
        return PartitionProperties(
            first_sequence_number=self.first_sequence_number,
            last_sequence_number=self.next_sequence_number - 1,
            last_offset=self._last_offset,
            last_enqueued_ms=self._last_enqueued_ms,
            is_empty=not len(self),
        )

    def place(self, drafts: Sequence[EventDraft], now_ms: int) -> list[StoredEvent]:
        """Assign sequence numbers and offsets to drafts, without adding them to the log."""
        enqueued_ms = max(now_ms, self._last_enqueued_ms)
        sequence_number, offset = self.next_sequence_number, self.next_offset
        placed = []
        for draft in drafts:
            event = store(draft, sequence_number, offset, enqueued_ms)
            placed.append(event)
            sequence_number += 1
            offset += len(event.payload)
        return placed

    def append(self, events: Sequence[StoredEvent]) -> None:
        """Append events from ``place``, or those from before a restart."""
        if not events:
            return
        last = events[-1]
        if not len(self):
            self.next_sequence_number = events[0].sequence_number
        assert events[0].sequence_number == self.next_sequence_number
        self._events.extend(events)
        self.next_sequence_number = last.sequence_number + 1
        self.next_offset = last.offset + len(last.payload)
        self._last_offset = last.offset
        self._last_enqueued_ms = last.enqueued_ms
        self.byte_count += sum(len(event.payload) for event in events)

    def read(self, sequence_number: int, count_max: int, bytes_max: int) -> list[StoredEvent]:
        """Return the events from ``sequence_number`` on, or from the oldest if that has expired.

        If there is an event, at least one is returned, however small ``bytes_max`` is.
        """
        start = self._index_of(sequence_number)
        found = self._events[start : start + count_max]
        size = 0
        for index, event in enumerate(found):
            size += len(event.payload)
            if size > bytes_max:
                return found[: max(index, 1)]
        return found

    def start_of(self, position: StartPosition) -> int:
        """Return the sequence number at which a receiver with this start position begins.

        Raises:
            RefusedError: The position is after the end, so it belongs to another log.
        """
        match position.kind:
            case PositionKind.LATEST:
                return self.next_sequence_number
            case PositionKind.SEQUENCE_NUMBER:
                wanted = position.value + (not position.inclusive)
                if wanted > max(self.next_sequence_number, 1):
                    raise position_beyond_end(
                        "sequence number", position.value, self.next_sequence_number - 1
                    )
                return min(max(wanted, self.first_sequence_number), self.next_sequence_number)
            case PositionKind.OFFSET:
                if position.value > max(self._last_offset, 0):
                    raise position_beyond_end("offset", position.value, self._last_offset)
                return self._sequence_number_at(position, _OFFSET)
            case PositionKind.ENQUEUED_TIME:
                return self._sequence_number_at(position, _ENQUEUED)

    def _sequence_number_at(
        self, position: StartPosition, key: Callable[[StoredEvent], int]
    ) -> int:
        bisect = bisect_left if position.inclusive else bisect_right
        index = bisect(self._events, position.value, lo=self._dead, key=key)
        return self._number_at(index)

    def _number_at(self, index: int) -> int:
        is_end = index == len(self._events)
        return self.next_sequence_number if is_end else self._events[index].sequence_number

    def _index_of(self, sequence_number: int) -> int:
        """Return where the event of this number is, or else the next one."""
        return bisect_left(self._events, sequence_number, lo=self._dead, key=_NUMBER)

    def expire(self, retention: Retention, now_ms: int) -> int:
        """Drop events beyond ``retention``; return how many."""
        dropped = 0
        if retention.events_max is not None:
            dropped += self._drop(max(0, len(self) - retention.events_max))
        if retention.bytes_max is not None:
            while self.byte_count > retention.bytes_max and len(self) > 1:
                dropped += self._drop(1)
        if retention.age_max is not None:
            oldest_ms = now_ms - int(retention.age_max / timedelta(milliseconds=1))
            alive = bisect_left(self._events, oldest_ms, lo=self._dead, key=_ENQUEUED)
            dropped += self._drop(alive - self._dead)
        return dropped

    def drop_before(self, sequence_number: int) -> int:
        """Drop the events below ``sequence_number``; return how many."""
        return self._drop(self._index_of(sequence_number) - self._dead)

    def compact(self) -> int:
        """Drop each event that a later one with its partition key supersedes; return how many.

        Events without a key stay.
        """
        superseded = set()
        for event in self._events[self._index_of(self._compacted_to) :]:
            key = event.partition_key
            if key is not None:
                superseded.add(self._newest_by_key.get(key))
                self._newest_by_key[key] = event.sequence_number
        self._compacted_to = self.next_sequence_number
        alive = self._events[self._dead :]
        kept = [event for event in alive if event.sequence_number not in superseded]
        if len(kept) < len(alive):
            self._events, self._dead = kept, 0
            self.byte_count = sum(len(event.payload) for event in kept)
        return len(alive) - len(kept)

    def _drop(self, count: int) -> int:
        for index in range(self._dead, self._dead + count):
            self.byte_count -= len(self._events[index].payload)
        self._dead += count
        if 2 * self._dead > len(
            self._events
        ):  # amortized: delete only when most of the list has expired
            del self._events[: self._dead]
            self._dead = 0
        return count


_SELECTOR: Final = re.compile(
    r"\s*amqp\.annotation\.(x-opt-offset|x-opt-sequence-number|x-opt-enqueued-time)"
    r"\s*(>=?)\s*'?(@latest|-?\d{1,19})'?\s*"
)


def parse_selector(selector: str) -> StartPosition:
    """Parse the selector expression in the filter of a receiver's source.

    Raises:
        RefusedError: Event Hubs does not support the expression.
    """
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        raise RefusedError(ARGUMENT_ERROR, f"The selector '{selector[:200]}' is not valid.")
    name, operator, value = match.groups()
    if value == PositionKind.LATEST:
        return LATEST
    return StartPosition(PositionKind(name), int(value), inclusive=operator == ">=")
