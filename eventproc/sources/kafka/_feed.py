"""The queue of one partition's messages between the reading thread and the event loop.

Rule: each field is written by one of the two threads only, and ``deque`` is thread-safe. So no lock
is needed for an event.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from eventproc.errors import SourceError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.sources.kafka._batch import KafkaBatch
from eventproc.sources.kafka._event import Message, rises, time_of
from eventproc.sources.kafka._offsets import offset_text

OVERHEAD_BYTES: Final = 500
"""Estimated memory of a queued message besides its value: objects for its parts, key and headers.
"""


class Feed:
    """The messages of one partition that were read and not taken yet."""

    def __init__(
        self,
        partition: int,
        start: int,
        *,
        after_ms: int | None,
        room: int,
        room_bytes: int,
        leader_epoch: int | None = None,
    ) -> None:
        """Create an empty feed for messages from offset *start* on.

        Args:
            partition: The partition of the messages.
            start: The first offset.
            after_ms: Drop messages at the beginning that are not newer than this time, because a
                broker may find the offset of a time only approximately.
            room: The number of messages at which the feed is full.
            room_bytes: The number of bytes at which the feed is full.
            leader_epoch: That of the leader under which the messages before *start* were read, if
                it is known. If its log ended before *start*, the feed ends with an error.
        """
        self.partition = partition
        self.start = start
        self._batches: deque[tuple[KafkaBatch, int]] = deque()
        """Messages as they were read, together, and their bytes; the first one is what ``take``
        left of a batch."""

        self.kind: type[KafkaBatch] = KafkaBatch
        """The class of the batches that ``take`` returns."""

        self.leader_epoch = leader_epoch
        """That of the newest message; a later leader says where the log of this one ended."""

        self.is_of_event_hubs = False
        """Whether the messages come from Event Hubs, and not from a broker of Kafka."""

        self.arrived = asyncio.Event()
        self.is_awaited = False
        self.error: SourceError | None = None
        self.high: int | None = None
        """The offset after the newest message of the partition, according to the last fetch."""
        self._after_ms = after_ms
        self._room = room
        self._room_bytes = room_bytes
        self._next = start
        self._newest: tuple[int, int] | None = None
        """Offset and time of the newest message that was read."""

        self._is_at_end = False
        self._put_count = self._put_bytes = 0
        self._taken_count = self._taken_bytes = 0

    # On the reading thread.

    def put(self, messages: Sequence[Message]) -> None:
        """Add messages in order, except for those that were added before."""
        batch = self.kind.of(messages)
        if batch.details.numbers[0] < self._next or not rises(batch.details.numbers):
            messages = self._new(messages)
            if not messages:
                return
            batch = self.kind.of(messages)
        if self.is_of_event_hubs:
            batch.details = batch.details.of_service()
        details = batch.details
        self.leader_epoch = messages[-1].leader_epoch()  # Never older than what is before _next.
        self._next = details.numbers[-1] + 1
        if (after_ms := self._after_ms) is not None:
            old_count = sum(1 for _ in takewhile(lambda time: time <= after_ms, details.times_ms))
            if old_count == len(batch):
                return
            batch = batch[old_count:]
            self._after_ms = None
        self._newest = (details.numbers[-1], details.times_ms[-1])
        self._is_at_end = False
        size = _size(batch)
        self._put_bytes += size
        self._put_count += len(batch)
        self._batches.append((batch, size))

    def _new(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return those that are above all messages before them: a client may fetch some again."""
        newest, found = self._next - 1, []
        for message in messages:
            if (offset := message.offset()) > newest:
                newest = offset
                found.append(message)
        return found

    def note_end(self) -> None:
        """Note that the end of the partition was reached."""
        self._is_at_end = True

    def end(self, error: SourceError) -> None:
        """End the feed. Later calls do not replace the first error."""
        if self.error is None:
            self.error = error

    @property
    def is_full(self) -> bool:
        """Whether reading should pause."""
        return self._bytes >= self._room_bytes or self.count >= self._room

    @property
    def has_room(self) -> bool:
        """Whether reading should go on after a pause."""
        return self._bytes <= self._room_bytes // 2 and self.count <= self._room // 2

    @property
    def count(self) -> int:
        """How many messages wait."""
        return self._put_count - self._taken_count

    @property
    def _bytes(self) -> int:
        return self._put_bytes - self._taken_bytes

    # On the event loop.

    def take(self, most: int) -> Sequence[ReceivedEvent]:
        """Take out the next messages."""
        taken: list[KafkaBatch] = []
        left = most
        while self._batches and left > 0:
            batch, size = self._batches.popleft()
            if len(batch) > left:
                part = batch[:left]
                part_size = _size(part)
                self._batches.appendleft((batch[left:], size - part_size))
                batch, size = part, part_size
            taken.append(batch)
            left -= len(batch)
            self._taken_bytes += size
            self._taken_count += len(batch)
        return self.kind.joined(taken) if len(taken) > 1 else taken[0] if taken else ()

    def leader_epoch_before(self, offset: int) -> int | None:
        """Return the epoch of a leader whose log went up to an offset, if it is known."""
        return self.leader_epoch if offset <= self._next else None

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition.

        At the end of the partition it is the last message that was read: offsets after it, if there
        are any, belong to transaction markers, which are not events.
        """
        newest, newest_ms = self._newest or (self.start - 1, None)
        number = newest
        if not self._is_at_end and self.high is not None:
            number = max(number, self.high - 1)
        if number < 0:
            return None
        return LastEnqueued(
            sequence_number=number,
            offset=offset_text(number),
            enqueued_time=time_of(newest_ms)
            if newest_ms is not None and newest == number
            else None,
        )


def _size(batch: KafkaBatch) -> int:
    return batch.body_byte_count + OVERHEAD_BYTES * len(batch)
