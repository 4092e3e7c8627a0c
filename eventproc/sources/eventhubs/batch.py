# ruff: noqa: SLF001 - fills a batch of Azure's client with encoded events, which it has no name for
"""A batch of encoded events, which is one request.

Azure's client encodes each event twice: the first time only to compute its size. That takes most of
the time of publishing, so events are encoded here, and appended to the client's own batch.
"""

from typing import Final

from azure.eventhub import EventDataBatch

_SHORT_MAX: Final = 255
_COST_OF_SHORT: Final = 5
_COST_OF_LONG: Final = 8
"""Bytes that a batch adds to those of each event: for a short event, and for a longer one."""


class Batch:
    """Encoded events of one target, up to the size that the link allows."""

    def __init__(self, batch: EventDataBatch) -> None:
        self.request = batch
        """The batch of Azure's client."""

    def __len__(self) -> int:
        return len(self.request)

    @property
    def bytes_max(self) -> int:
        """Most bytes of the batch."""
        return self.request.max_size_in_bytes

    def size_with(self, event: bytes) -> int:
        """Return the bytes of the batch with another event."""
        cost = _COST_OF_SHORT if len(event) <= _SHORT_MAX else _COST_OF_LONG
        return self.request.size_in_bytes + len(event) + cost

    def add(self, event: bytes) -> bool:
        """Add an event; return false, and change nothing, if there is no room for it."""
        size = self.size_with(event)
        if size > self.bytes_max:
            return False
        self.request._message.data.append(event)
        self.request._size = size
        self.request._count += 1
        return True
