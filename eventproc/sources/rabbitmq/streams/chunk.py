"""A chunk: the events that a broker stored together, with one time for all of them."""

from collections.abc import Sequence
from typing import NamedTuple

EVENT_OVERHEAD_BYTES = 100
"""Estimated memory of a waiting event besides its bytes."""


class Chunk(NamedTuple):
    """Consecutive events of one stream."""

    first: int
    """The offset of the first event; those of the others follow without a gap."""

    time_ms: int
    """When the broker stored the chunk, in milliseconds since 1970, by its clock."""

    messages: Sequence[bytes]
    """The events, encoded."""

    size: int
    """Its memory in bytes, estimated."""

    @property
    def end(self) -> int:
        """The offset after its last event."""
        return self.first + len(self.messages)
