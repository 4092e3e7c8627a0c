"""The receiver of one partition of a Kafka topic."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from eventproc._base.extras import needing
from eventproc.errors import (
    PositionLostError,
    ReceiverDisplacedError,
    SourceUnavailableError,
)
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.kafka._feed import Feed
from eventproc.sources.kafka._reader import Reader


class KafkaReceiver(PartitionReceiver):
    """Takes the events of one partition out of its feed."""

    def __init__(self, reader: Reader, feed: Feed) -> None:
        self._reader = reader
        self._feed = feed

    def read_columns(self) -> None:
        with needing("columns"):  # Imported here: handlers of single events need no Arrow.
            from eventproc.sources.kafka._columns import ColumnBatch  # noqa: PLC0415

        self._feed.kind = ColumnBatch

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)  # let other tasks run, even if events are always waiting
        feed = self._feed
        if not feed.count and feed.error is None and wait_max > timedelta(0):
            await self._wait(wait_max)
        # After a displacement the new receiver gets the queued events too: do not return them.
        if feed.error is not None and (
            not feed.count or isinstance(feed.error, ReceiverDisplacedError)
        ):
            if isinstance(feed.error, PositionLostError):
                feed.leader_epoch = None  # A position that is used again was chosen by an operator.
            raise feed.error
        events = feed.take(events_max)
        self._reader.note_room(feed)
        return events

    async def _wait(self, wait_max: timedelta) -> None:
        """Return when there is a message or an error, or after *wait_max*."""
        feed = self._feed
        feed.arrived.clear()
        feed.is_awaited = True
        try:
            # ``is_awaited`` is set before this check: the reader does not wake a receiver for a
            # message that arrived earlier.
            if not feed.count and feed.error is None:
                async with asyncio.timeout(wait_max.total_seconds()):
                    await feed.arrived.wait()
        except TimeoutError:
            return
        finally:
            feed.is_awaited = False

    async def close(self) -> None:
        feed = self._feed
        feed.end(SourceUnavailableError("the receiver is closed"))
        feed.arrived.set()
        feed.take(feed.count)
        self._reader.release(feed)

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return self._feed.last_enqueued

    @property
    def first_sequence_number(self) -> int:
        return self._feed.start
