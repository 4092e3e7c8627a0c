"""How many events the service may send: AMQP credit, bounded in events and in bytes.

AMQP credit counts events only. So credit is computed from the size of recent events: as many as fit
into the buffer. It is reduced if events turn out to be larger. Events that the service has already
sent still arrive; reading stops while the buffer holds far more than its limit (``is_too_full``).
"""

from typing import Final

UNKNOWN_SIZE: Final = 64 * 1024
"""Assumed size of an event, in bytes, until the first event arrives. It makes the first grant
small; usually a larger one follows as soon as the first event is there."""

_OLD: Final = 0.75
"""Factor by which the estimated event size falls at each ``add`` if events become smaller. If they
become larger, the estimate rises at once."""

TOO_FULL: Final = 2
"""Reading stops while the buffer holds this many times ``bytes_max``."""


class Credit:
    """The credit for one buffer.

    Args:
        events_max: most events in the buffer and granted as credit together.
        bytes_max: the same in bytes, as far as sizes can be estimated.
    """

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self.events_max = events_max
        self._bytes_max = bytes_max
        self._event_size = float(UNKNOWN_SIZE)
        self._is_size_known = False
        self.held_count = 0
        self.held_bytes = 0

    def add(self, count: int, size: int) -> None:
        """Count *count* events of *size* bytes in total that were put into the buffer."""
        self.held_count += count
        self.held_bytes += size
        if count:
            old = self._event_size * _OLD if self._is_size_known else 1.0
            self._event_size = max(size / count, old)
            self._is_size_known = True

    def remove(self, count: int, size: int) -> None:
        """Count *count* events of *size* bytes in total that were taken out of the buffer."""
        self.held_count -= count
        self.held_bytes -= size

    @property
    def is_too_full(self) -> bool:
        """Whether to stop reading: a reduction of credit does not stop events already sent."""
        return self.held_bytes >= TOO_FULL * self._bytes_max

    @property
    def capacity(self) -> int:
        """How many events of the estimated size fit into an empty buffer."""
        return max(1, min(self.events_max, int(self._bytes_max / self._event_size)))

    def to_grant(self, granted: int) -> int | None:
        """Return the new credit if *granted* is the current one; ``None`` to leave it unchanged.

        A grant for each event would cost a frame for each; a grant only when all credit is used
        would leave the link idle for a round trip. Credit is reduced only by large amounts.
        """
        capacity = self.capacity
        fitting = int((self._bytes_max - self.held_bytes) / self._event_size)
        wanted = max(0, min(self.events_max - self.held_count, fitting))
        if not self.held_count:
            wanted = max(wanted, 1)  # a single event may be larger than ``bytes_max``
        half = capacity // 2
        if granted <= half and wanted - granted >= max(half, 1):
            return wanted
        if granted > wanted and granted - wanted > half and granted > 2 * wanted:
            return wanted
        return None
