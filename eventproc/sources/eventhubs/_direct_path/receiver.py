"""A receiver that reads one partition ahead of its caller, into a bounded buffer.

Rule 1: the service sends events only against AMQP credit, and credit is granted only for free room
in the buffer. So the buffer is bounded, and yet the link is read while the caller is slow: it stays
alive, and a displacement is noticed at once.
Rule 2: AMQP credit counts events only, so it is computed from the size of recent events: as many as
fit into the buffer. If events turn out to be far larger than those before them, those that the
service has already sent still arrive; then reading rests until there is room
(``Credit.is_too_full``).
Rule 3: between taking events out of the buffer and returning them there is no ``await``, so that a
cancelled call loses no events.
Rule 4: the buffer holds encoded messages. ``receive`` turns them into events, or into a batch.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from eventproc._base.logs import error_text
from eventproc.errors import ReceiverDisplacedError, SourceError, SourceUnavailableError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs._direct_path.azure_internals import PartitionLink
from eventproc.sources.eventhubs._direct_path.frames import FrameParser
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader, last_enqueued_in


class ReceiveBuffer(Protocol):
    """Encoded messages, first in, first out."""

    def __len__(self) -> int:
        """Return how many messages it holds."""

    def add(self, payloads: Sequence[bytes]) -> int:
        """Add messages; return their bytes."""

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        """Remove up to *count* messages; return their events, their number, and their bytes.

        Raises:
            SourceRejectedError: a message has no position in a partition, so it is not an event.
        """

    def clear(self) -> None:
        """Remove all messages."""


class EventBuffer:
    """A buffer that returns an object for each event."""

    def __init__(self) -> None:
        self._payloads: deque[bytes] = deque()
        self._events = EventReader()

    def __len__(self) -> int:
        return len(self._payloads)

    def add(self, payloads: Sequence[bytes]) -> int:
        self._payloads.extend(payloads)
        return sum(map(len, payloads))

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        take = self._payloads.popleft
        payloads = [take() for _ in range(min(count, len(self._payloads)))]
        return self._events.read(payloads), len(payloads), sum(map(len, payloads))

    def take_all(self) -> list[bytes]:
        """Remove all messages and return them, for another buffer."""
        payloads = list(self._payloads)
        self._payloads.clear()
        return payloads

    def clear(self) -> None:
        self._payloads.clear()


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


LISTEN_MAX_S: Final = 2.0
"""The longest time between two calls of ``maintain``; heartbeats are due about every minute."""


class EventHubReceiver(PartitionReceiver):
    """Reads one partition ahead, from a link that is open."""

    def __init__(
        self,
        link: PartitionLink,
        *,
        room: int,
        room_bytes: int,
        room_for_columns: int | None = None,
    ) -> None:
        """Start to read.

        Args:
            link: The link.
            room: Most events to hold.
            room_bytes: Most bytes to hold.
            room_for_columns: Most events to hold after ``read_columns``; by default ``room``.
        """
        self._link = link
        self._credit = Credit(room, room_bytes)
        self._room_for_columns = room_for_columns or room
        self._buffer: ReceiveBuffer = EventBuffer()
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._error: SourceError | None = None
        self._newest: bytes | None = None
        """The encoded event that arrived last."""
        self._decoded_end: tuple[bytes | None, LastEnqueued | None] = (None, None)
        """The encoded event that ``last_enqueued`` was last decoded from, and the result."""
        self._waiting: asyncio.Timeout | None = None
        """The reader task's wait for bytes, which ends early if there is room again."""

        self._is_resting = False
        self._reader = self._loop.create_task(self._read())

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)  # let other tasks run, even if events are always waiting
        if not self._buffer and self._error is None and wait_max > timedelta(0):
            self._arrived.clear()
            # For an event that comes alone, a timeout that cancels would cost more.
            timer = self._loop.call_later(wait_max.total_seconds(), self._arrived.set)
            try:
                await self._arrived.wait()
            finally:
                timer.cancel()
            if not self._buffer and self._error is None:
                return ()
        # After a displacement the new receiver gets the buffered events too: do not return them.
        if self._error is not None and (
            not self._buffer or isinstance(self._error, ReceiverDisplacedError)
        ):
            raise self._error
        events, count, byte_count = self._buffer.take(events_max)
        self._credit.remove(count, byte_count)
        self._wake_reader()
        return events

    def read_columns(self) -> None:
        link, buffer = self._link, self._buffer
        if not (isinstance(buffer, EventBuffer) and isinstance(link.parser, FrameParser)):
            return
        # Imported here: handlers of single events need neither numpy nor Arrow.
        from eventproc.sources.eventhubs._direct_path.column_batch import ColumnBuffer  # noqa: PLC0415
        from eventproc.sources.eventhubs._direct_path.column_frames import ColumnFrameParser  # noqa: PLC0415

        self._credit.events_max = self._room_for_columns
        self._buffer = ColumnBuffer()
        self._buffer.add(buffer.take_all())
        link.parser = ColumnFrameParser(link.parser)

    async def close(self) -> None:
        self._end(SourceUnavailableError("the receiver is closed"))
        self._buffer.clear()
        self._reader.cancel()
        await asyncio.wait((self._reader,))
        await self._link.close()  # a reader task that never ran did not close it

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        # Threads of handlers and of metrics call this too. An event that arrives while an older
        # one is decoded must not count as decoded, so both values are read and written as a pair.
        newest, (decoded, last) = self._newest, self._decoded_end
        if newest is not None and newest is not decoded:
            last = last_enqueued_in(newest) or last
            self._decoded_end = newest, last
        return last

    @property
    def is_over(self) -> bool:
        """Whether the receiver has ended and will not read any more."""
        return self._error is not None

    def _keep(self, payloads: Sequence[bytes]) -> None:
        """Put encoded events into the buffer."""
        if payloads:
            self._credit.add(len(payloads), self._buffer.add(payloads))
            self._newest = payloads[-1]
            self._arrived.set()

    async def _read(self) -> None:
        """Read until the link ends or the receiver is closed; then close the link."""
        link = self._link
        try:
            while self._error is None:  # Azure's client may have suppressed a cancellation.
                self._is_resting = self._credit.is_too_full
                await link.maintain(is_reading=not self._is_resting)
                credit = self._credit.to_grant(link.credit)
                if credit is not None:
                    await link.grant(credit)
                try:
                    async with asyncio.timeout(LISTEN_MAX_S) as self._waiting:
                        await self._listen()
                except TimeoutError:
                    pass
                finally:
                    self._waiting = None
                await link.attend()
        except SourceError as error:
            self._end(error)
        except Exception as error:  # noqa: BLE001 - from the client; ``receive`` raises it
            failure = SourceUnavailableError(f"the reader of the link failed: {error_text(error)}")
            failure.__cause__ = error
            self._end(failure)
        finally:
            self._end(SourceUnavailableError("the reader stopped"))
            await link.close()

    async def _listen(self) -> None:
        """Keep what arrives, until something else is to be done for the link."""
        link, credit = self._link, self._credit
        if self._is_resting:
            await asyncio.Future()
        while self._error is None:
            self._keep(link.events_in(await link.listen()))
            await asyncio.sleep(0)  # let other tasks run, even if there is more to read
            is_due = link.is_attention_due or credit.is_too_full
            if is_due or credit.to_grant(link.credit) is not None:
                return

    def _end(self, error: SourceError) -> None:
        """End the receiver. Later calls do not replace the first error."""
        if self._error is None:
            self._error = error
        self._arrived.set()

    def _wake_reader(self) -> None:
        """Wake the reader task if there is room for more events, so that it grants credit."""
        link, waiting, credit = self._link, self._waiting, self._credit
        if waiting is None or waiting.expired() or credit.is_too_full:
            return
        if self._is_resting or credit.to_grant(link.credit) is not None:
            self._waiting = None  # do not wake it twice
            waiting.reschedule(0)
