"""Dead letters as messages of a RabbitMQ exchange or queue: sink and reader.

The reader holds the messages of its queue: it has received them and not yet acknowledged.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Final

from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    LetterDamagedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import DeadLetter, StoredLetter, in_order, letter_from_json
from eventproc.ports import DeadLetterReader, DeadLetterSink
from eventproc.sources.rabbitmq._amqp import (
    FAILED,
    LIMITED_FROM,
    Broker,
    HeldMessage,
    without_client_cancellations,
)
from eventproc.sources.rabbitmq._event import ACQUIRED_COUNT_HEADER, DELIVERY_COUNT_HEADER

DELIVERIES_MAX: Final = 15
"""A quorum queue with a limit, which is 20 by default from RabbitMQ 4 on, drops a message that was
delivered more often. Each reading is a delivery."""

_NO_GET: Final = "NOT_IMPLEMENTED"
"""The broker's answer to a request for a single message of a stream."""


class HeldMessages:
    """All messages that a queue has when it is read. ``close`` returns them to it, in order."""

    def __init__(self, broker: Broker, queue: str, *, has_delivery_limit: bool) -> None:
        self._broker = broker
        self._queue = queue
        self._has_delivery_limit = has_delivery_limit
        self._channel: Any = None

    async def take(self) -> list[HeldMessage]:
        """Return the messages.

        Raises:
            SourceRejectedError: there is no such queue, it is a stream, or reading it once more
                might make the broker drop a message.
            SourceUnavailableError: no answer.
        """
        try:
            return await self._taken()
        except BaseException:
            await self.close()  # Otherwise a second reading would not get what this one has.
            raise

    async def _taken(self) -> list[HeldMessage]:
        what = f"reading queue {self._queue!r}"
        async with self._broker.answered(what):
            connection = await self._broker.connected()
            self._channel = await connection.channel(publisher_confirms=False)
            queue = await self._channel.declare_queue(self._queue, passive=True)
        messages: list[HeldMessage] = []
        try:
            # Read an empty queue, too: if it is a stream, the broker refuses.
            for _ in range(max(1, queue.declaration_result.message_count)):
                async with self._broker.answered(what):
                    message = await queue.get(fail=False)
                if message is None:
                    break
                messages.append(message)
                self._check(message)
        except SourceUnavailableError as error:
            if _NO_GET not in str(error):
                raise
            raise SourceRejectedError(
                f"{self._queue!r} is a stream, which gives no single messages: have the letters "
                "sent to a classic or a quorum queue"
            ) from error
        return messages

    def _check(self, message: HeldMessage) -> None:
        counts = [
            message.headers.get(ACQUIRED_COUNT_HEADER),
            message.headers.get(DELIVERY_COUNT_HEADER),
        ]
        delivered = max((count for count in counts if isinstance(count, int)), default=0)
        is_limited = self._has_delivery_limit and self._broker.version() >= LIMITED_FROM
        if is_limited and delivered >= DELIVERIES_MAX:
            raise SourceRejectedError(
                f"a message of queue {self._queue!r} was delivered {delivered} times, and by "
                "default this broker drops one after 20: each reading counts. Set the policy "
                "delivery-limit of the queue to -1, and say that it has no limit"
            )

    async def acknowledge(self, message: HeldMessage) -> None:
        """Return when the broker has the acknowledgement.

        Raises:
            SourceUnavailableError: it may not have it; then the message returns to the queue.
        """
        async with self._broker.answered(f"acknowledging a message of {self._queue!r}"):
            await message.ack()
            # A request without effect: its answer shows that the broker read the acknowledgement.
            await self._channel.set_qos(prefetch_count=0)

    async def close(self) -> None:
        """Return what was not acknowledged to the queue. Never raises."""
        channel, self._channel = self._channel, None
        if channel is not None and not channel.is_closed:
            with suppress(*FAILED), without_client_cancellations():
                async with asyncio.timeout(5):
                    await channel.close()


_SHORT_MAX: Final = 255
"""Most bytes of a short text of AMQP 0-9-1."""


class RabbitDeadLetterSink(DeadLetterSink):
    """Publishes each dead letter as JSON, and waits for the broker's confirmation.

    A letter that no queue takes is an error: the event stays until one is bound.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        exchange: the exchange to publish to; it must exist. Empty: the default exchange, which
            routes to the queue that the routing key names.
        routing_key: the routing key of each letter.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(
        self, url: Annotated[str, SECRET], *, exchange: str = "", routing_key: str = ""
    ) -> None:
        if not (exchange or routing_key):
            raise ConfigurationError("give exchange=, or routing_key= with the name of a queue")
        self._exchange = exchange
        self._routing_key = routing_key
        self._broker = Broker(url)

    async def open(self) -> None:
        """Check that the exchange, or the queue, exists.

        Raises:
            ConfigurationError: it does not exist, or the broker refuses the user.
            DeadLetterError: no answer; try again.
        """
        try:
            if self._exchange:
                await self._broker.check_exchange(self._exchange)
            else:
                await self._broker.depths([self._routing_key])
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(f"dead letters cannot be stored: {error}") from error
        except SourceError as error:
            raise DeadLetterError(str(error)) from error

    async def close(self) -> None:
        """Close the connection."""
        await self._broker.close()

    async def store(self, letter: DeadLetter) -> None:
        """Publish the letter.

        Raises:
            DeadLetterError: it was not confirmed, or no queue takes it.
        """
        try:
            await self._broker.publish(
                letter.to_json(),
                exchange=self._exchange,
                routing_key=self._routing_key,
                content_type="application/json",
                message_id=_short(letter.event.message_id),
            )
        except SourceError as error:
            raise DeadLetterError(str(error)) from error


def _short(message_id: str | None) -> str | None:
    """Return the id if AMQP 0-9-1 can have it; any other is only in the JSON."""
    try:
        size = len((message_id or "").encode())
    except UnicodeEncodeError:
        return None
    return message_id if size <= _SHORT_MAX else None


class RabbitDeadLetterReader(DeadLetterReader):
    """Reads the letters in a queue. All of them are in memory at once.

    The reader takes the messages that the queue has at the first call of ``letters``, and keeps
    them from other consumers until ``close``; then those that were not removed are in the queue
    again, in order.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        queue: the queue of the letters: that of the sink's ``routing_key``, or one that is bound to
            its exchange. It must not be a stream, which gives no single messages.
        has_delivery_limit: whether the broker may drop a message that was delivered often. From
            RabbitMQ 4 on it does so by default, and each reading is a delivery: the reader then
            refuses messages that were delivered 15 times.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(
        self, url: Annotated[str, SECRET], queue: str, *, has_delivery_limit: bool = True
    ) -> None:
        if not queue:
            raise ConfigurationError("queue is empty: give the name of the queue of the letters")
        self._queue = queue
        self._broker = Broker(url)
        self._messages = HeldMessages(self._broker, queue, has_delivery_limit=has_delivery_limit)
        self._held: list[StoredLetter] | None = None

    async def open(self) -> None:
        with _translated():
            await self._broker.depths([self._queue])

    async def close(self) -> None:
        self._held = None
        await self._messages.close()
        await self._broker.close()

    async def letters(self) -> AsyncIterator[StoredLetter]:
        if self._held is None:
            with _translated():
                messages = await self._messages.take()
            self._held = in_order(map(_stored, range(len(messages)), messages))
        for stored in tuple(self._held):
            yield stored

    async def remove(self, stored: StoredLetter) -> bool:
        assert self._held is not None, "a letter of this reader"
        assert isinstance(stored.handle, tuple), "a letter of this reader"
        for message in stored.handle:
            with _translated():
                await self._messages.acknowledge(message)
        self._held.remove(stored)
        return True


def _stored(number: int, message: HeldMessage) -> StoredLetter:
    letter, damage = None, ""
    try:
        letter = letter_from_json(message.body)
    except LetterDamagedError as error:
        damage = str(error)
    return StoredLetter(
        place=f"message {number}",
        letter=letter,
        damage=damage,
        raw=b"" if letter else message.body,
        handle=message,
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SourceRejectedError, SuspectSettingError) as error:
        raise ConfigurationError(f"dead letters cannot be read: {error}") from error
    except SourceError as error:
        raise DeadLetterError(f"dead letters cannot be read now: {error}") from error
