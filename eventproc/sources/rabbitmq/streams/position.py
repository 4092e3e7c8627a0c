"""Offsets of streams in checkpoints, and the offset to begin at.

A stream's offset is the sequence number. A checkpoint's ``offset`` has a prefix, ``stream:42``, so
that it cannot be mistaken for one of another protocol. All functions are pure.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.core.checkpoint_rules import BEFORE_FIRST_OFFSET
from eventproc.core.offset_format import STREAM_OFFSET_PREFIX
from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition
from eventproc.sources.rabbitmq.streams.chunk import Chunk

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DIGITS_MAX: Final = 19
"""Most digits of a 64-bit number."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a stream begins and ends."""

    low: int
    """The offset of the oldest event; 0 if there is none."""

    high: int
    """The offset after the newest event; 0 if there is none."""

    newest_ms: int | None
    """The time of the newest event, in milliseconds since 1970."""

    @classmethod
    def of(cls, first: Chunk | None, last: Chunk | None) -> "Bounds":
        """Return the bounds of a stream with this first and last chunk."""
        if last is None:
            return cls(0, 0, None)
        return cls((first or last).first, last.end, last.time_ms)


def offset_text(number: int) -> str:
    """Return an event's offset in the form of a checkpoint."""
    return f"{STREAM_OFFSET_PREFIX}{number}"


def first_ms(time: datetime, *, is_inclusive: bool) -> int:
    """Return the first millisecond since 1970 of the wanted events.

    These are the events from *time* on if *is_inclusive*, and else those after it.
    """
    return (time - _EPOCH - is_inclusive * timedelta.resolution) // _MILLISECOND + 1


def start_of(partition_id: str, position: EventPosition, bounds: Bounds) -> int:
    """Return the offset to begin at; the caller looks up a time itself.

    A position before the oldest event means the oldest event, because retention deleted the rest.

    Args:
        partition_id: For the error message.
        position: Where to begin.
        bounds: The bounds of the partition's stream.

    Raises:
        SourceRejectedError: the position is after the end, or is not one of a stream.
    """
    if position.is_latest:
        return bounds.high
    start = _wanted(partition_id, position)
    if start is None:
        return bounds.low
    if start > bounds.high:
        raise SourceRejectedError(
            f"partition {partition_id!r} ends at offset {bounds.high}, and the position to "
            f"continue from is {start}: events that were handled are not there any more. The "
            "stream was deleted and created again, or the cluster lost events. If the events that "
            "are there now should be handled, use `eventproc checkpoints reset` for this partition"
        )
    return max(start, bounds.low)


def _wanted(partition_id: str, position: EventPosition) -> int | None:
    """Return the offset that a position names, without regard to the bounds."""
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
    if f"{mark}:" != STREAM_OFFSET_PREFIX:
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset!r}, which is not one of "
            f"a RabbitMQ stream (those begin with {STREAM_OFFSET_PREFIX!r}): it was written by a "
            "processor with another source. Use a separate consumer group for the stream"
        )
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise SourceRejectedError(
            f"partition {partition_id!r} has a position at offset {offset[:60]!r}, which is not a "
            "valid offset of a RabbitMQ stream"
        )
    return int(digits)
