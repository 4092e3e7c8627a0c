"""Publishes keyed messages to partition queues, each confirmed by the broker."""

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

from eventproc._base.resource import AsyncResource
from eventproc._base.retries import Attempts, Backoff
from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    EventRefusedError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import OutgoingEvent
from eventproc.ports import EventPublisher
from eventproc.sources.rabbitmq._amqp import QUEUE_ARGUMENTS, Broker
from eventproc.sources.rabbitmq._event import KEY_HEADER
from eventproc.sources.rabbitmq._names import QueueHash, QueueNames


class QueuePublisher(AsyncResource):
    """Publishes to the queues ``PREFIX-P0`` to ``PREFIX-P(count - 1)``.

    All messages of a key go to one queue. They stay in order if each is published after the
    confirmation of the one before. All publishers of a prefix need the same *count* and *key_hash*.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        prefix: the first part of the queues' names.
        count: how many queues there are.
        key_hash: how a key is assigned to a queue.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(
        self,
        url: Annotated[str, SECRET],
        *,
        prefix: str,
        count: int,
        key_hash: QueueHash = QueueHash.JUMP,
    ) -> None:
        self._names = QueueNames(prefix, count)
        self._key_hash = key_hash
        self._broker = Broker(url)

    async def open(self) -> None:
        """Connect, and declare the queues that are missing.

        Raises:
            SourceRejectedError: one exists with other arguments, or the user has no right.
            SourceUnavailableError: no answer.
        """
        names = (self._names.queue(number) for number in range(self._names.count))
        await self._broker.declare(dict.fromkeys(names, QUEUE_ARGUMENTS))

    async def close(self) -> None:
        """Close the connection."""
        await self._broker.close()

    async def publish(
        self,
        body: bytes,
        *,
        key: str,
        properties: Mapping[str, str | int | float | bool | bytes] | None = None,
        message_id: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Publish a message; return when a majority of the queue's brokers has stored it.

        Raises:
            ValueError: a property is no finite number.
            SourceRejectedError: its queue does not exist any more.
            SourceUnavailableError: no confirmation. The message may have been stored: publishing it
                again may store it twice.
        """
        await self._broker.publish(
            body,
            exchange="",
            routing_key=self._names.queue(self._names.number_of(key, self._key_hash)),
            headers={
                **{name: _header(name, value) for name, value in (properties or {}).items()},
                KEY_HEADER: key,
            },
            message_id=message_id,
            content_type=content_type,
            timestamp=datetime.now(UTC),
        )


BACKOFF: Final = Backoff(maximum=timedelta(seconds=5))
"""Waits between attempts to publish an event."""

_UNENCODABLE: Final = (TypeError, ValueError, OverflowError, struct.error)
"""What the client raises for an event that cannot be encoded, such as an id of 300 characters."""


class PartitionPublisher(EventPublisher):
    """Publishes events to existing partition queues, each to the queue of its partition.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        prefix: the first part of the queues' names.
        count: how many queues there are.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(self, url: Annotated[str, SECRET], *, prefix: str, count: int) -> None:
        self._names = QueueNames(prefix, count)
        self._broker = Broker(url)

    async def open(self) -> None:
        """Connect, and check that the queues exist.

        Raises:
            ConfigurationError: one does not, or the broker refuses the user.
            SourceUnavailableError: no answer.
        """
        try:
            await self._broker.depths([self._names.queue(n) for n in range(self._names.count)])
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(f"nothing can be published: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        await self._broker.close()

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        attempts = Attempts(patience, BACKOFF, SourceUnavailableError)
        for index, event in enumerate(events):
            if event.body is None or event.partition_id is None:
                raise EventRefusedError(index, "it has no body, or does not name its partition")
            try:
                queue = self._names.queue_of(event.partition_id)
            except SourceRejectedError as error:
                raise EventRefusedError(index, str(error)) from error
            try:
                await attempts(partial(self._publish, queue, event.body, event))
            except _UNENCODABLE as error:
                raise EventRefusedError(index, f"AMQP 0-9-1 cannot encode it: {error}") from error

    async def _publish(self, queue: str, body: bytes, event: OutgoingEvent) -> None:
        headers = {name: _header(name, value) for name, value in event.properties.items()}
        if event.partition_key is not None:
            headers[KEY_HEADER] = event.partition_key
        await self._broker.publish(
            body,
            exchange="",
            routing_key=queue,
            headers=headers,
            message_id=event.message_id,
            correlation_id=event.correlation_id,
            content_type=event.content_type,
            timestamp=datetime.now(UTC),
        )


def _header(name: str, value: object) -> Any:  # noqa: ANN401 - as the client takes it
    """Return the value of a header; the client takes no ``bytes``.

    Raises:
        ValueError: it is no finite number. The broker would end the connection.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"its property {name!r} is {value}, not a finite number")
    if isinstance(value, list):
        return [_header(name, each) for each in value]
    return bytearray(value) if isinstance(value, bytes) else value
