"""Messages of a queue that one process has received and not yet acknowledged."""

import asyncio
from contextlib import suppress
from typing import Any, Final, Protocol

from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.sources.rabbitmq.amqp import (
    FAILED,
    LIMITED_FROM,
    Broker,
    without_client_cancellations,
)
from eventproc.sources.rabbitmq.event import ACQUIRED_COUNT_HEADER, DELIVERY_COUNT_HEADER

DELIVERIES_MAX: Final = 15
"""A quorum queue with a limit, which is 20 by default from RabbitMQ 4 on, drops a message that was
delivered more often. Each reading is a delivery."""

_NO_GET: Final = "NOT_IMPLEMENTED"
"""The broker's answer to a request for a single message of a stream."""


class HeldMessage(Protocol):
    """A message that no other consumer gets while it is held."""

    @property
    def body(self) -> bytes:
        """What was published."""

    @property
    def headers(self) -> dict[str, Any]:
        """The headers of publisher and broker."""

    async def ack(self) -> None:
        """Acknowledge the message; the broker deletes it."""


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
