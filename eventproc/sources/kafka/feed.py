"""The queue of one partition's messages between the reading thread and the event loop.

Rule: each field is written by one of the two threads only, and ``deque`` is thread-safe. So no lock
is needed for an event.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import dropwhile, islice
from operator import lt
from typing import Final

from eventproc.errors import SourceError
from eventproc.models import LastEnqueued
from eventproc.sources.kafka.event import Message, enqueued_time
from eventproc.sources.kafka.position import OFFSETS

OVERHEAD_BYTES: Final = 500
"""Estimated memory of a queued message besides its value: the object, its key and its headers."""


class Feed:
    """The messages of one partition that were read and not taken yet."""

    def __init__(
        self, partition: int, start: int, *, after_ms: int | None, room: int, room_bytes: int
    ) -> None:
        """Create an empty feed for messages from offset *start* on.

        Args:
            partition: The partition of the messages.
            start: The first offset.
            after_ms: Drop messages at the beginning that are not newer than this time, because a
                broker may find the offset of a time only approximately.
            room: The number of messages at which the feed is full.
            room_bytes: The number of bytes at which the feed is full.
        """
        self.partition = partition
        self.start = start
        self._runs: deque[tuple[Sequence[Message], int]] = deque()
        """Messages as they were read, together, and their bytes; the first run is what ``take``
        left of one."""

        self.arrived = asyncio.Event()
        self.is_awaited = False
        self.error: SourceError | None = None
        self.high: int | None = None
        """The offset after the newest message of the partition, according to the last fetch."""
        self._after_ms = after_ms
        self._room = room
        self._room_bytes = room_bytes
        self._next = start
        self._newest: Message | None = None
        self._is_at_end = False
        self._put_count = self._put_bytes = 0
        self._taken_count = self._taken_bytes = 0

    # On the reading thread.

    def put(self, messages: Sequence[Message]) -> None:
        """Add messages in order, except for those that were added before."""
        offsets = [message.offset() for message in messages]
        if offsets[0] < self._next or not _rises(offsets):
            messages = self._new(messages)
            if not messages:
                return
        self._next = messages[-1].offset() + 1
        if (after_ms := self._after_ms) is not None:
            messages = list(dropwhile(lambda old: old.timestamp()[1] <= after_ms, messages))
            if not messages:
                return
            self._after_ms = None
        self._newest = messages[-1]
        self._is_at_end = False
        size = _size(messages)
        self._put_bytes += size
        self._put_count += len(messages)
        self._runs.append((messages, size))

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

    def take(self, most: int) -> list[Message]:
        """Take out the next messages."""
        taken: list[Message] = []
        while self._runs and len(taken) < most:
            run, size = self._runs.popleft()
            if len(run) > (room := most - len(taken)):
                part = run[:room]
                part_size = _size(part)
                self._runs.appendleft((run[room:], size - part_size))
                run, size = part, part_size
            taken += run
            self._taken_bytes += size
        self._taken_count += len(taken)
        return taken

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition.

        At the end of the partition it is the last message that was read: offsets after it, if there
        are any, belong to transaction markers, which are not events.
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
            offset=OFFSETS.text(number),
            enqueued_time=enqueued_time(newest) if newest is not None and is_newest else None,
        )


def _size(messages: Sequence[Message]) -> int:
    return sum(map(len, messages)) + OVERHEAD_BYTES * len(messages)


def _rises(offsets: Sequence[int]) -> bool:
    """Return whether each is higher than the one before; most often it is by one."""
    return offsets == list(range(offsets[0], offsets[0] + len(offsets))) or all(
        map(lt, offsets, islice(offsets, 1, None))
    )
