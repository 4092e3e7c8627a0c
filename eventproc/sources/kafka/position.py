"""Offsets as records keep them, and where to begin between the ends of a partition.

Kafka's offset is the sequence number. As the ``offset`` of a checkpoint it is written with a mark,
``kafka:42``, which nobody can mistake for a position of an event hub over AMQP. All functions are
pure.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.core.numbering import KAFKA_OFFSET_PREFIX
from eventproc.core.progress import BEFORE_FIRST_OFFSET
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a partition has now."""

    low: int
    """The offset of the oldest event that it may still have."""

    high: int
    """The offset after the newest one that may be read."""


def offset_text(number: int) -> str:
    """The offset of an event, as a checkpoint keeps it."""
    return f"{KAFKA_OFFSET_PREFIX}{number}"


def to_ms(time: datetime) -> int:
    """The last whole millisecond, since 1970, that is not after the time."""
    return (time - _EPOCH) // _MILLISECOND


def start_of(partition_id: str, position: EventPosition, bounds: Bounds) -> int:
    """The offset to begin at; a time has to be looked up before.

    What retention took already cannot come any more, so nothing is below the oldest event.

    Raises:
        SourceRejectedError: nothing can be at this position, or it is no position of Kafka's.
    """
    if position.is_latest:
        return bounds.high
    number = position.sequence_number
    if position.offset is not None:
        number = _number_in(partition_id, position.offset)
    if number is None:
        return bounds.low
    start = number if position.is_inclusive else number + 1
    if start > bounds.high:
        raise SourceRejectedError(
            f"partition {partition_id!r} ends before offset {bounds.high}, so nothing can be read "
            f"from {start} on: was the topic deleted and made again? Then begin anew with "
            "`eventproc checkpoints reset`"
        )
    return max(start, bounds.low)


def _number_in(partition_id: str, offset: str) -> int:
    if offset == BEFORE_FIRST_OFFSET:
        return -1
    mark, _, digits = offset.partition(":")
    if f"{mark}:" != KAFKA_OFFSET_PREFIX:
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset!r}, which is none of "
            f"Kafka's (those begin with {KAFKA_OFFSET_PREFIX!r}): it was written by a processor "
            "that reads over AMQP. Use a consumer group of its own for Kafka"
        )
    if not (digits.isascii() and digits.isdigit()):
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset!r}, which is no number"
        )
    return int(digits)
