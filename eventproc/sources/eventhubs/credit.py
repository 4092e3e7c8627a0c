"""How many events the service may send next: bounded in number and in bytes.

AMQP counts events only. So bytes are bounded by what an event lately had: credit is what fits of
events of that size, and is taken back where events turn out larger than those it was granted for.
What is under way by then still comes; what may come of that is bounded by not reading
(``is_too_full``).
"""

from typing import Final

UNKNOWN_SIZE: Final = 64 * 1024
"""Taken for the size of an event until one has come: the first grant is small, and most often it
is followed by a larger one as soon as the first event is there."""

_OLD: Final = 0.75
"""What remains of a size, with each look, where events get smaller. Larger ones count at once."""

TOO_FULL: Final = 2
"""So many times the bytes that there is room for."""


class Credit:
    """The account of one buffer.

    Args:
        events_max: most events to hold and to have under way together.
        bytes_max: the same in bytes, as far as sizes can be foretold.
    """

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._event_size = float(UNKNOWN_SIZE)
        self._is_size_known = False
        self.held_count = 0
        self.held_bytes = 0

    def add(self, count: int, size: int) -> None:
        """So many events came, with so many bytes together."""
        self.held_count += count
        self.held_bytes += size
        if count:
            old = self._event_size * _OLD if self._is_size_known else 1.0
            self._event_size = max(size / count, old)
            self._is_size_known = True

    def remove(self, count: int, size: int) -> None:
        """So many events were taken out of the buffer."""
        self.held_count -= count
        self.held_bytes -= size

    @property
    def is_too_full(self) -> bool:
        """Whether to read no more, since credit that is taken back is not obeyed yet."""
        return self.held_bytes >= TOO_FULL * self._bytes_max

    @property
    def capacity(self) -> int:
        """How many events of the present size there is room for in an empty buffer."""
        return max(1, min(self._events_max, int(self._bytes_max / self._event_size)))

    def to_grant(self, granted: int) -> int | None:
        """Return what to grant, where so much is granted; ``None``: leave it.

        Not for each event, which would cost a frame for each, and not only when all is used up,
        which would cost a round trip of silence. Less than before only where it counts.
        """
        capacity = self.capacity
        fitting = int((self._bytes_max - self.held_bytes) / self._event_size)
        wanted = max(0, min(self._events_max - self.held_count, fitting))
        if not self.held_count:
            wanted = max(wanted, 1)  # one event may be larger than all the room there is
        half = capacity // 2
        if granted <= half and wanted - granted >= max(half, 1):
            return wanted
        if granted > wanted and granted - wanted > half and granted > 2 * wanted:
            return wanted
        return None
