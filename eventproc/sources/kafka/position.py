"""Kafka offsets in checkpoints, and the offset to begin at.

Kafka's offset is the sequence number. A checkpoint's ``offset`` has a prefix, ``kafka:42``, so that
it cannot be mistaken for an offset of an event hub over AMQP. All functions are pure.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.core.checkpoint_rules import BEFORE_FIRST_OFFSET
from eventproc.core.offset_format import KAFKA_OFFSET_PREFIX
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_MAX: Final = 19
"""Most digits of a 64-bit number."""

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first offset and the end offset of a partition."""

    low: int
    """The offset of the oldest event that the partition may still have."""

    high: int
    """The offset after the newest event that may be read."""


def offset_text(number: int) -> str:
    """Return an event's offset in the form of a checkpoint."""
    return f"{KAFKA_OFFSET_PREFIX}{number}"


def last_ms_before(time: datetime, *, is_inclusive: bool) -> int:
    """Return the last millisecond since 1970 before the wanted events.

    These are the events from *time* on if *is_inclusive*, and else those after it.
    """
    return (time - _EPOCH - is_inclusive * timedelta.resolution) // _MILLISECOND


def is_end_needed(partition_id: str, position: EventPosition, bounds: Bounds) -> bool:
    """Return whether the partition's real end has to be found by reading.

    A broker may report an end offset that is lower than the offsets of events which it delivers. So
    a position after that end may be valid, and "latest" may be later.

    Raises:
        SourceRejectedError: the position is not one of Kafka's.
    """
    start = _wanted(partition_id, position)
    return position.is_latest or (start is not None and start > bounds.high)


def start_of(partition_id: str, position: EventPosition, bounds: Bounds) -> int:
    """Return the offset to begin at; the caller looks up a time itself.

    A position before the oldest event means the oldest event, because retention deleted the rest.

    Args:
        partition_id: For the error message.
        position: Where to begin.
        bounds: The partition's bounds. If ``is_end_needed``, the end must have been found by
            reading.

    Raises:
        SourceRejectedError: the position is after the end, or is not one of Kafka's.
    """
    if position.is_latest:
        return bounds.high
    start = _wanted(partition_id, position)
    if start is None:
        return bounds.low
    if start > bounds.high:
        raise SourceRejectedError(
            f"partition {partition_id!r} was read to its end, which is offset {bounds.high}, and "
            f"the position to continue from is {start}: events that were handled are not there any "
            "more. The topic was deleted and created again, or the cluster lost events when a "
            "partition changed its leader. If the events that are there now should be handled, "
            "use `eventproc checkpoints reset` for this partition"
        )
    return max(start, bounds.low)


def _wanted(partition_id: str, position: EventPosition) -> int | None:
    """Return the offset that a position names, without regard to the partition's bounds."""
    number = position.sequence_number
    if position.offset is not None:
        number = _number_in(partition_id, position.offset)
    if number is None:
        return None
    return number if position.is_inclusive else number + 1


def _number_in(partition_id: str, offset: str) -> int:
    if offset == BEFORE_FIRST_OFFSET:
        return -1
    mark, _, digits = offset.partition(":")
    if f"{mark}:" != KAFKA_OFFSET_PREFIX:
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset!r}, which is not one of "
            f"Kafka's (those begin with {KAFKA_OFFSET_PREFIX!r}): it was written by a processor "
            "that reads over AMQP. Use a separate consumer group for Kafka"
        )
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset[:60]!r}, which is not a "
            "valid offset of Kafka"
        )
    return int(digits)
