"""Offsets of Kafka in checkpoints, and where reading begins.

The offset is the sequence number. A checkpoint's ``offset`` has a prefix, ``kafka:42``, so that it
cannot be mistaken for one of another protocol. All functions are pure.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET
from eventproc._core.delivery.offset_format import KAFKA_OFFSET_PREFIX
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DIGITS_MAX: Final = 19
"""Most digits of a 64-bit number."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a partition begins and ends."""

    low: int
    """The offset of the oldest event that it may still have."""

    high: int
    """The offset after the newest event that may be read."""


def offset_text(number: int) -> str:
    """Return an event's offset in the form of a checkpoint."""
    return f"{KAFKA_OFFSET_PREFIX}{number}"


def offset_in(partition_id: str, position: EventPosition) -> int | None:
    """Return the offset in a position; ``None`` for a time, and for either end of the partition.

    Raises:
        SourceRejectedError: the position is not one of Kafka.
    """
    number = position.sequence_number
    if position.offset is not None:
        number = _number_in(partition_id, position.offset)
    if number is None:
        return None
    return number if position.is_inclusive else number + 1


def start_offset(partition_id: str, position: EventPosition, bounds: Bounds) -> int:
    """Return the offset to begin at. For a time, the caller has to look the offset up.

    A position before the oldest event means the oldest event, because retention deleted the rest.

    Args:
        partition_id: for the error message.
        position: where to begin.
        bounds: those of the partition.

    Raises:
        SourceRejectedError: the position is after the end, or is not one of Kafka.
    """
    if position.is_latest:
        return bounds.high
    start = offset_in(partition_id, position)
    if start is None:
        return bounds.low
    if start > bounds.high:
        raise SourceRejectedError(
            f"partition {partition_id!r} ends at offset {bounds.high}, and the position to "
            f"continue from is {start}: events that were handled are not there any more. The topic "
            "was deleted and created again, or the cluster lost events when a partition changed "
            "its leader. If the events that are there now should be handled, use "
            "`eventproc checkpoints reset` for this partition"
        )
    return max(start, bounds.low)


def _number_in(partition_id: str, offset: str) -> int:
    if offset == BEFORE_FIRST_OFFSET:
        return -1
    mark, _, digits = offset.partition(":")
    if f"{mark}:" != KAFKA_OFFSET_PREFIX:
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset!r}, which is not one of "
            f"Kafka (those begin with {KAFKA_OFFSET_PREFIX!r}): a processor with another source "
            "wrote it. Use a separate consumer group for Kafka"
        )
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset[:60]!r}, which is not a "
            "valid offset of Kafka"
        )
    return int(digits)


def last_ms_before(time: datetime, *, is_inclusive: bool) -> int:
    """Return the last millisecond before the wanted events, counted from 1970.

    The wanted events are those from *time* on if *is_inclusive*, otherwise those after it.
    """
    return (time - _EPOCH - is_inclusive * timedelta.resolution) // _MILLISECOND
