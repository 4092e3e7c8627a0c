"""The events of one partition that have arrived and that no receiver has taken yet.

All methods are called on the event loop of the source.
"""

import asyncio
from collections import deque
from typing import Final

from eventproc.errors import SourceError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.sources.amqp.fields import to_time
from eventproc.sources.rabbitmq.streams.chunk import Chunk
from eventproc.sources.rabbitmq.streams.credit import ChunkCredit
from eventproc.sources.rabbitmq.streams.event import Key, events_of
from eventproc.sources.rabbitmq.streams.options import StreamOptions
from eventproc.sources.rabbitmq.streams.position import OFFSETS, StreamBounds

NO_TIME: Final = -1


class Feed:
    """A queue of chunks, out of which a receiver takes events."""

    def __init__(
        self,
        stream: str,
        start: int,
        bounds: StreamBounds,
        options: StreamOptions,
        *,
        key: Key,
        from_ms: int = NO_TIME,
    ) -> None:
        """Create an empty feed.

        Args:
            stream: The name of the stream.
            start: The first offset; events before it are dropped, because the broker sends the
                whole chunk that contains it.
            bounds: The stream's bounds when the feed was created.
            options: How many events it may hold.
            key: Reads an event's partition key.
            from_ms: Drop chunks at the beginning that are older; ``NO_TIME`` for none.
        """
        self.stream = stream
        self.start = start
        """The first offset that can arrive; after lost events, the offset of the event after
        them."""
        self.error: SourceError | None = None
        self.arrived = asyncio.Event()
        self.credit = ChunkCredit(options.prefetch, options.prefetch_bytes)
        self._key = key
        self._from_ms = from_ms
        self._chunks: deque[Chunk] = deque()
        self._next = start
        """The offset after the newest event that arrived."""
        self._taken = start
        """The offset after the newest event that was taken."""
        self._high = bounds.high
        self._newest_ms = bounds.newest_ms

    def put(self, chunk: Chunk) -> None:
        """Add a chunk, unless all of its events are before the start or arrived before."""
        self.credit.add(len(chunk.messages), chunk.size)
        self.note_end(chunk.end, chunk.time_ms)
        if chunk.end <= self._next or chunk.time_ms < self._from_ms:
            self._next = max(self._next, chunk.end)
            self.credit.remove(len(chunk.messages), chunk.size)
        else:
            if chunk.first < self._next:
                chunk = self._without_earlier(chunk)
            self._from_ms = NO_TIME
            self._next = chunk.end
            self._chunks.append(chunk)
        self.arrived.set()

    def _without_earlier(self, chunk: Chunk) -> Chunk:
        dropped = self._next - chunk.first
        messages = chunk.messages[dropped:]
        self.credit.remove(dropped, 0)
        return chunk._replace(first=self._next, messages=messages)

    def end(self, error: SourceError) -> None:
        """End the feed. Later calls do not replace the first error."""
        if self.error is None:
            self.error = error
        self.arrived.set()

    def note_end(self, high: int, newest_ms: int | None) -> None:
        """Note the offset after the newest event of the stream, and its time."""
        if high >= self._high:
            self._high, self._newest_ms = high, newest_ms

    def take(self, most: int) -> list[ReceivedEvent]:
        """Take out the next events, up to a gap."""
        events: list[ReceivedEvent] = []
        key, chunks = self._key, self._chunks
        while chunks and most > 0:
            chunk = chunks[0]
            if events and chunk.first > self._taken:
                break
            begin = max(self._taken, chunk.first)
            end = min(begin + most, chunk.end)
            messages = chunk.messages
            if begin > chunk.first or end < chunk.end:
                messages = messages[begin - chunk.first : end - chunk.first]
            events += events_of(messages, begin, chunk.time_ms, key)
            most -= end - begin
            self._taken = end
            is_empty = end == chunk.end
            self.credit.remove(end - begin, chunk.size if is_empty else 0)
            if is_empty:
                chunks.popleft()
        return events

    @property
    def has_gap(self) -> bool:
        """Whether offsets before the next event are missing.

        The broker uses some offsets for other data than events, and retention may delete events.
        """
        return bool(self._chunks) and self._chunks[0].first > self._taken

    def pass_gap(self, low: int) -> None:
        """Continue after a gap. Events in it are lost if the stream now begins after them.

        Args:
            low: The offset of the oldest event.
        """
        if self.has_gap:
            first = self._chunks[0].first
            if low > self._taken:
                self.start = first
            self._taken = first

    def clear(self) -> None:
        """Drop what was not taken."""
        self._chunks.clear()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._chunks

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the stream, as far as it is known."""
        if self._high <= 0:
            return None
        return LastEnqueued(
            sequence_number=self._high - 1,
            offset=OFFSETS.text(self._high - 1),
            enqueued_time=None if self._newest_ms is None else to_time(self._newest_ms),
        )
