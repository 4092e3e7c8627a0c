"""The receiver of one partition queue, and which of its deliveries are to be acknowledged."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from eventproc.errors import SourceError, SourceUnavailableError
from eventproc.models import LastEnqueued, ReceivedEvent, SequenceRange
from eventproc.ports import QueueReceiver
from eventproc.sources.rabbitmq._amqp import Consumer, Delivery
from eventproc.sources.rabbitmq._event import QueueEvent, offset_text


class Settled:
    """The sequence numbers that are settled: all up to one, and some above it. Pure.

    Rule 1: each delivery is acknowledged once, because the broker closes a channel that repeats
    one.
    Rule 2: a delivery tag is the number of a delivery on its link, from 1 on.
    """

    def __init__(self, first: int) -> None:
        """*first* is the sequence number of the link's first delivery; nothing is settled yet."""
        self._first = first
        self._through = first - 1
        self._above: set[int] = set()

    def add(
        self, sequence_number: int, completed: Sequence[SequenceRange]
    ) -> tuple[int | None, list[int]]:
        """Settle all up to *sequence_number*, and the ranges; return delivery tags to acknowledge.

        The first one acknowledges all deliveries up to it, and is ``None`` if there is no new one.
        Those in the list are acknowledged one by one, before the first.
        """
        alone = [
            number
            for done in completed
            for number in range(max(done.first, self._first), done.last + 1)
            if number not in self._above
        ]
        self._above.update(alone)
        newest = sequence_number
        while newest in self._above:  # The broker refuses a tag that is acknowledged already.
            newest -= 1
        through = newest - self._first + 1 if newest > self._through else None
        self._through = max(self._through, sequence_number)
        self._above = {number for number in self._above if number > self._through}
        return through, [number - self._first + 1 for number in alone]


class RabbitReceiver(QueueReceiver):
    """Numbers the deliveries of a queue, and acknowledges those that are settled."""

    def __init__(self, following: int, *, timeout: timedelta) -> None:
        """Give the first delivery the number *following*."""
        self._first = self._following = following
        self._timeout_s = timeout.total_seconds()
        self._consumer: Consumer | None = None
        self._waiting: deque[QueueEvent] = deque()
        self._arrived = asyncio.Event()
        self._error: SourceError | None = None
        self._settled = Settled(following)
        self.depth = 0
        """How many messages the broker has that it has not delivered."""

    def attach(self, consumer: Consumer) -> None:
        """Use this consumer; messages may have arrived already."""
        self._consumer = consumer

    def deliver(self, message: Delivery) -> None:
        """Take a message from the broker."""
        tag = self._following - self._first + 1
        if message.delivery_tag != tag:
            # Acknowledgements use this number: with a wrong one the broker would delete other
            # messages.
            self.end(SourceUnavailableError(f"delivery {message.delivery_tag}, expected was {tag}"))
            return
        event = QueueEvent(message, self._following, datetime.now(UTC))
        self._following += 1
        self._waiting.append(event)
        self._arrived.set()

    def end(self, error: SourceError) -> None:
        """End the link with an error."""
        self._error = self._error or error
        self._arrived.set()

    @property
    def is_over(self) -> bool:
        """Whether the link has ended."""
        return self._error is not None

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)  # Let other tasks run, even if messages are always waiting.
        if not self._waiting and self._error is None and wait_max > timedelta(0):
            self._arrived.clear()
            try:
                async with asyncio.timeout(wait_max.total_seconds()):
                    await self._arrived.wait()
            except TimeoutError:
                return ()
        if self._error is not None:  # The broker delivers the waiting messages again.
            raise self._error
        count = min(events_max, len(self._waiting))
        return [self._waiting.popleft() for _ in range(count)]

    def settle(self, sequence_number: int, completed: Sequence[SequenceRange] = ()) -> None:
        if self._consumer is None or self._error is not None:
            return
        through, alone = self._settled.add(min(sequence_number, self._following - 1), completed)
        if alone or through is not None:
            self._consumer.acknowledge(through, alone)

    async def until_settled(self) -> None:
        if self._error is not None or self._consumer is None:
            raise self._error or SourceUnavailableError("the receiver is closed")
        await self._consumer.until_acknowledged(self._timeout_s)

    async def stop(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop(self._timeout_s)

    async def close(self) -> None:
        self.end(SourceUnavailableError("the receiver is closed"))
        self._waiting.clear()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop(self._timeout_s)
            await consumer.close(self._timeout_s)

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        number = self._following - 1 + self.depth
        return LastEnqueued(sequence_number=number, offset=offset_text(number), enqueued_time=None)
