"""One partition's messages on their way from the reading thread to the event loop.

Rule: every field is written on one side only; ``deque`` takes care of the rest. So there is no
lock on the way of an event.
"""

import asyncio
from collections import deque
from typing import Final

from eventproc.errors import SourceError
from eventproc.models import LastEnqueued
from eventproc.sources.kafka.event import Message, enqueued_time
from eventproc.sources.kafka.position import offset_text

OVERHEAD_BYTES: Final = 500
"""What a waiting message takes beside its value: the object, its key and its headers."""


class Feed:
    """The messages of one partition that were read and not yet taken."""

    def __init__(
        self, partition: int, start: int, *, after_ms: int | None, room: int, room_bytes: int
    ) -> None:
        """Be ready for messages from offset *start* on.

        Args:
            partition: Where they are from.
            start: The offset to begin at.
            after_ms: Leave out what comes first and is not newer than that; a broker may find a
                time only roughly.
            room: When to call the feed full, in messages, ...
            room_bytes: ... or in bytes.
        """
        self.partition = partition
        self.start = start
        self.messages: deque[Message] = deque()
        self.arrived = asyncio.Event()
        self.is_awaited = False
        self.error: SourceError | None = None
        self.high: int | None = None
        """The offset after the newest message of the partition, as last told."""
        self._after_ms = after_ms
        self._room = room
        self._room_bytes = room_bytes
        self._next = start
        self._newest: Message | None = None
        self._is_at_end = False
        self._put_bytes = 0
        self._taken_bytes = 0

    # On the reading thread.

    def put(self, message: Message) -> None:
        """Add a message, unless it was read before."""
        offset = message.offset()
        if offset is None or offset < self._next:
            return
        self._next = offset + 1
        if self._after_ms is not None:
            if message.timestamp()[1] <= self._after_ms:
                return
            self._after_ms = None
        self._put_bytes += len(message) + OVERHEAD_BYTES
        self._newest = message
        self._is_at_end = False
        self.messages.append(message)

    def note_end(self) -> None:
        """There is nothing more to read for now."""
        self._is_at_end = True

    def end(self, error: SourceError) -> None:
        """Nothing will be put any more; the first reason stays."""
        if self.error is None:
            self.error = error

    @property
    def is_full(self) -> bool:
        """Whether reading should pause."""
        return self._bytes >= self._room_bytes or len(self.messages) >= self._room

    @property
    def has_room(self) -> bool:
        """Whether reading should go on after a pause."""
        return self._bytes <= self._room_bytes // 2 and len(self.messages) <= self._room // 2

    @property
    def _bytes(self) -> int:
        return self._put_bytes - self._taken_bytes

    # On the event loop.

    def take(self, most: int) -> list[Message]:
        """Take out the next messages."""
        messages = self.messages
        taken = [messages.popleft() for _ in range(min(most, len(messages)))]
        self._taken_bytes += sum(map(len, taken)) + OVERHEAD_BYTES * len(taken)
        return taken

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition.

        At the end of the partition it is the last one that was read: the offsets behind it, if
        there are any, belong to marks of transactions, which are no events.
        """
        newest = self._newest
        number = self.start - 1 if newest is None else newest.offset() or 0
        if not self._is_at_end and self.high is not None:
            number = max(number, self.high - 1)
        if number < 0:
            return None
        is_newest = newest is not None and newest.offset() == number
        return LastEnqueued(
            sequence_number=number,
            offset=offset_text(number),
            enqueued_time=enqueued_time(newest) if newest is not None and is_newest else None,
        )
