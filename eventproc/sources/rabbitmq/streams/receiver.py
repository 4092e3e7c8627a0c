"""The receiver of one partition, which is a stream."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from eventproc.errors import SourceError, SourceUnavailableError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.rabbitmq.streams.client import Connection
from eventproc.sources.rabbitmq.streams.feed import Feed
from eventproc.sources.rabbitmq.streams.position import StreamBounds

END_EVERY_S: Final = 10.0
"""How often to request the end of a stream while events wait in the feed. While none waits, the
newest event that arrived is the end."""


class StreamReceiver(PartitionReceiver):
    """Takes the events of one stream out of its feed."""

    def __init__(
        self,
        connection: Connection,
        number: int,
        feed: Feed,
        ask_bounds: Callable[[], Awaitable[StreamBounds]],
    ) -> None:
        """Read from *feed*, which subscription *number* of the connection fills."""
        self._connection = connection
        self._number = number
        self._feed = feed
        self._ask_bounds = ask_bounds
        self._asked_s = time.monotonic()
        self._asking: asyncio.Task[None] | None = None

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        feed = self._feed
        await self._grant()
        # Let other tasks run, even if events are always waiting. There is no await after a take, so
        # that a cancelled call has taken no events.
        await asyncio.sleep(0)
        if feed.is_empty and feed.error is None and wait_max > timedelta(0):
            await self._wait(wait_max)
        if feed.is_empty and feed.error is not None:
            raise feed.error
        if feed.has_gap:
            feed.pass_gap((await self._ask_bounds()).low)
        events = feed.take(events_max)
        if not feed.is_empty:
            self._follow_end()
        return events

    async def _wait(self, wait_max: timedelta) -> None:
        """Return when there is an event or an error, or after *wait_max*."""
        feed = self._feed
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_max.total_seconds()):
                while feed.is_empty and feed.error is None:
                    feed.arrived.clear()
                    await feed.arrived.wait()
                    await self._grant()  # all events of the chunk may be before the start

    async def _grant(self) -> None:
        """Let the broker send more chunks, if there is room for them."""
        chunks = self._feed.credit.grant()
        if chunks and self._feed.error is None:
            await self._connection.grant(self._number, chunks)

    def _follow_end(self) -> None:
        """Request the end of the stream every ``END_EVERY_S``, without waiting for the answer."""
        now_s = time.monotonic()
        if now_s - self._asked_s < END_EVERY_S or self._feed.error is not None:
            return
        if self._asking is None or self._asking.done():
            self._asked_s = now_s
            self._asking = asyncio.create_task(self._ask_end())

    async def _ask_end(self) -> None:
        with suppress(SourceError):  # the feed reports it, if the connection broke
            bounds = await self._ask_bounds()
            self._feed.note_end(bounds.high, bounds.newest_ms)

    async def close(self) -> None:
        feed, asking = self._feed, self._asking
        feed.end(SourceUnavailableError("the receiver is closed"))
        feed.clear()
        if asking is not None:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        await self._connection.unsubscribe(self._number, feed)

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return self._feed.last_enqueued

    @property
    def first_sequence_number(self) -> int:
        return self._feed.start
