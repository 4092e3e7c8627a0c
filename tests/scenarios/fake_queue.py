"""A fake of a queue, in memory, for scenarios on virtual time, where no broker can run.

Like RabbitMQ's: one consumer is active, each has a limited number of unsettled messages, and those
of a link that is closed come again, in their former order.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from eventproc.errors import SourceUnavailableError
from eventproc.models import (
    LastEnqueued,
    OffsetFormat,
    PartitionProperties,
    ReceivedEvent,
    SequenceRange,
)
from eventproc.ports import QueueReceiver, QueueSource

SENDING_S = 0.05
"""How long the broker does not know what was settled."""


class FakeQueue:
    """The messages that wait, and the links that consume them; the first one is active."""

    def __init__(self) -> None:
        self.waiting: deque[int] = deque()
        self.links: list[FakeLink] = []
        self.settled: list[int] = []

    def put(self, *messages: int) -> None:
        """Add messages."""
        self.waiting.extend(messages)
        self.deliver()

    def deliver(self) -> None:
        """Send what the active link may have."""
        for link in self.links[:1]:
            while self.waiting and len(link.unsettled) < link.prefetch:
                link.take(self.waiting.popleft())

    def leave(self, link: "FakeLink") -> None:
        """Take back what was not settled."""
        self.waiting.extendleft(reversed(list(link.unsettled.values())))
        link.unsettled.clear()
        self.cancel(link)

    def cancel(self, link: "FakeLink") -> None:
        """Send nothing more; the next link becomes active."""
        if link in self.links:
            self.links.remove(link)
        self.deliver()


class FakeLink(QueueReceiver):
    """A consumer."""

    def __init__(self, queue: FakeQueue, following: int, prefetch: int) -> None:
        self.queue = queue
        self.prefetch = prefetch
        self.unsettled: dict[int, int] = {}
        self.is_broken = False
        self._following = following
        self._arrived: deque[ReceivedEvent] = deque()
        self._changed = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        queue.links.append(self)
        queue.deliver()

    def take(self, message: int) -> None:
        """Receive a message."""
        number, self._following = self._following, self._following + 1
        self.unsettled[number] = message
        self._arrived.append(
            ReceivedEvent(
                body=str(message).encode(),
                sequence_number=number,
                offset=f"queue:{number}",
                enqueued_time=datetime.now(UTC),
            )
        )
        self._changed.set()

    def break_off(self) -> None:
        """Lose the connection."""
        self.is_broken = True
        self.queue.leave(self)
        self._changed.set()

    async def receive(self, *, events_max: int, wait_max: timedelta):
        await asyncio.sleep(0)
        if not self._arrived and not self.is_broken:
            self._changed.clear()
            try:
                async with asyncio.timeout(wait_max.total_seconds()):
                    await self._changed.wait()
            except TimeoutError:
                return ()
        if self.is_broken:
            raise SourceUnavailableError("the connection is lost")
        return [self._arrived.popleft() for _ in range(min(events_max, len(self._arrived)))]

    def settle(self, sequence_number: int, completed: Sequence[SequenceRange] = ()) -> None:
        settled = [
            number
            for number in self.unsettled
            if number <= sequence_number or any(number in done for done in completed)
        ]
        sending = asyncio.create_task(self._send(settled))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _send(self, settled: list[int]) -> None:
        await asyncio.sleep(SENDING_S)
        for number in settled:
            if number in self.unsettled:
                self.queue.settled.append(self.unsettled.pop(number))
        self.queue.deliver()

    async def until_settled(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending)
        if self.is_broken:
            raise SourceUnavailableError("the connection is lost")

    async def stop(self) -> None:
        self.queue.cancel(self)

    async def close(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending)
        self.queue.leave(self)

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return None


class FakeQueues(QueueSource):
    """The queues that processors share."""

    def __init__(self, queues: dict[str, FakeQueue], prefetch: int = 10) -> None:
        self.queues = queues
        self.prefetch = prefetch

    fully_qualified_namespace = "fake"
    eventhub_name = "queues"
    offset_format = OffsetFormat.QUEUE

    @property
    def unsettled_max(self) -> int:
        return self.prefetch

    @property
    def unsettled_span_max(self) -> timedelta:
        return timedelta(minutes=30)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def check_consumer_group(self, name: str) -> None: ...

    async def partition_ids(self):
        return list(self.queues)

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        return PartitionProperties(
            partition_id=partition_id,
            beginning_sequence_number=0,
            last_enqueued_sequence_number=-1,
            last_enqueued_offset="-1",
            last_enqueued_time=None,
            is_empty=True,
        )

    async def open_receiver(self, consumer_group, partition_id, position):
        number = position.sequence_number
        following = 0 if number is None else number + 1
        return FakeLink(self.queues[partition_id], following, self.prefetch)
