"""Kafka offsets in checkpoints, and when the end of a partition has to be found by reading."""

from typing import Final

from eventproc.core.offset_format import KAFKA_OFFSET_PREFIX
from eventproc.models import EventPosition
from eventproc.sources.log_offsets import Bounds, LogOffsets

OFFSETS: Final = LogOffsets(
    prefix=KAFKA_OFFSET_PREFIX,
    log="Kafka",
    losses="The topic was deleted and created again, or the cluster lost events when a partition "
    "changed its leader.",
)


def is_end_needed(partition_id: str, position: EventPosition, bounds: Bounds) -> bool:
    """Return whether the partition's real end has to be found by reading.

    A broker may report an end offset that is lower than the offsets of events which it delivers. So
    a position after that end may be valid, and "latest" may be later.

    Raises:
        SourceRejectedError: the position is not one of Kafka's.
    """
    start = OFFSETS.wanted(partition_id, position)
    return position.is_latest or (start is not None and start > bounds.high)
