"""Offsets of streams in checkpoints, and where a stream begins and ends."""

from dataclasses import dataclass
from typing import Final

from eventproc.core.offset_format import STREAM_OFFSET_PREFIX
from eventproc.sources.log_offsets import Bounds, LogOffsets
from eventproc.sources.rabbitmq.streams.chunk import Chunk

OFFSETS: Final = LogOffsets(
    prefix=STREAM_OFFSET_PREFIX,
    log="a RabbitMQ stream",
    losses="The stream was deleted and created again, or the cluster lost events.",
)


@dataclass(frozen=True, slots=True)
class StreamBounds(Bounds):
    """Where a stream begins and ends; both are 0 if it is empty."""

    newest_ms: int | None
    """The time of the newest event, in milliseconds since 1970."""

    @classmethod
    def of(cls, first: Chunk | None, last: Chunk | None) -> "StreamBounds":
        """Return the bounds of a stream with this first and last chunk."""
        if last is None:
            return cls(0, 0, None)
        return cls((first or last).first, last.end, last.time_ms)
