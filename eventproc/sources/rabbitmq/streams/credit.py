"""How many chunks the broker may send: bounded in events and in bytes.

Credit of streams counts chunks, whose size only the broker knows. So credit is computed from the
size of recent chunks: as many as fit into the partition's buffer.
"""

from typing import Final

FIRST: Final = 2
"""Credit before the size of a chunk is known."""

CHUNKS_MAX: Final = 200
"""Most credit at a time."""

_OLD: Final = 0.9
"""Factor by which the estimated size of a chunk falls with each smaller chunk. After a larger chunk
the estimate rises at once."""


class ChunkCredit:
    """The credit of one subscription."""

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._chunk_events = self._chunk_bytes = 1.0
        self._is_size_known = False
        self.granted = FIRST
        """How many chunks the broker may still send."""
        self.held_events = 0
        self.held_bytes = 0

    def add(self, events: int, size: int) -> None:
        """Count a chunk that arrived."""
        self.granted = max(0, self.granted - 1)
        self.held_events += events
        self.held_bytes += size
        self._chunk_events = max(float(events), self._chunk_events * _OLD)
        self._chunk_bytes = max(float(size), self._chunk_bytes * _OLD)
        self._is_size_known = True

    def remove(self, events: int, size: int) -> None:
        """Count events that were taken or dropped."""
        self.held_events -= events
        self.held_bytes -= size

    def grant(self) -> int:
        """Return how many chunks more the broker may send; they count as granted.

        A grant for each chunk would cost a frame for each, a grant only when all credit is used
        would leave the connection idle for a round trip.
        """
        if not self._is_size_known:
            return 0
        capacity = self._fitting(self._events_max, self._bytes_max)
        wanted = self._fitting(
            self._events_max - self.held_events, self._bytes_max - self.held_bytes
        )
        if not self.held_events:
            wanted = max(wanted, 1)  # a single chunk may be larger than the limits
        missing = wanted - self.granted
        if missing <= 0 or missing < capacity // 2:
            return 0
        self.granted = wanted
        return missing

    def _fitting(self, events: int, size: int) -> int:
        """Return how many chunks of the estimated size fit."""
        fitting = min(events / self._chunk_events, size / self._chunk_bytes)
        return max(0, min(CHUNKS_MAX, int(fitting)))
