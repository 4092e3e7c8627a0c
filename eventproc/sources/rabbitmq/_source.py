"""The partition queues of RabbitMQ as an ``EventSource``."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

from eventproc._base.settings import SECRET, Count, PositiveSpan, check_settings, checked
from eventproc._base.tasks import end
from eventproc.errors import (
    ConfigurationError,
    SourceError,
    SourceRejectedError,
    SuspectSettingError,
)
from eventproc.models import EventPosition, OffsetFormat, PartitionProperties, ReceivedEvent
from eventproc.ports import QueueReceiver, QueueSource
from eventproc.sources.rabbitmq._amqp import (
    ACKNOWLEDGEMENT_TIMEOUT,
    CONNECT_TIMEOUT,
    HEARTBEAT_S,
    QUEUE_ARGUMENTS,
    Broker,
    shown_address,
)
from eventproc.sources.rabbitmq._event import DELIVERIES, offset_text
from eventproc.sources.rabbitmq._names import QueueNames
from eventproc.sources.rabbitmq._receiver import RabbitReceiver

HEARTBEATS_PER_EXPIRATION: Final = 5
"""The broker ends a connection two to three heartbeats after it last received something. The leases
of a suspended process expire at the earliest after two thirds of ``ownership_expiration``, so by
then its queues are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Every setting of a ``RabbitQueues``. The defaults suit most queues."""

    prefetch: Count = 1000
    """Most unacknowledged messages of each queue. Messages are acknowledged after a checkpoint, so
    the processor writes one when half of this number are handled, at the latest."""

    depth_interval: PositiveSpan = timedelta(seconds=5)
    """How often each owner asks the broker how many messages wait in its queue: this is the lag."""

    connect_timeout: PositiveSpan = CONNECT_TIMEOUT
    """Longest time for one request to the broker, connecting included."""

    heartbeat: PositiveSpan | None = None
    """The heartbeat interval, in whole seconds. The broker ends a connection two to three intervals
    after it last received something, and then delivers the queues of a suspended process to another
    consumer. By default a fifth of ``ownership_expiration``, so that a queue is free before the
    partition's lease has expired."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)


class RabbitQueues(QueueSource):
    """Reads the queues ``PREFIX-P0`` to ``PREFIX-P(count - 1)``; declares those that are missing.

    They are durable quorum queues with a single active consumer. A message is acknowledged when a
    checkpoint covers it, and then the broker deletes it: a position cannot be chosen or moved.
    Sequence numbers count deliveries. A message that is delivered again has a new one.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        prefix: the first part of the queues' names.
        count: how many queues there are. To add queues, raise it first here and then in the
            publishers.
        options: how to read.

    Raises:
        ConfigurationError: an argument is not valid; the message does not repeat the password.
    """

    @checked
    def __init__(
        self,
        url: Annotated[str, SECRET],
        *,
        prefix: str,
        count: int,
        options: QueueOptions | None = None,
    ) -> None:
        self._shown = shown_address(url)
        self._url = url
        self._names = QueueNames(prefix, count)
        self._options = options or QueueOptions()
        self._heartbeat = self._options.heartbeat or timedelta(seconds=HEARTBEAT_S)
        self._broker: Broker | None = None
        self._receivers: dict[str, RabbitReceiver] = {}
        self._measuring: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r}, {self._names.prefix!r})"

    @property
    def fully_qualified_namespace(self) -> str:
        address, _, virtual_host = self._shown.partition("/")
        return f"{virtual_host}@{address}" if virtual_host else address

    @property
    def eventhub_name(self) -> str:
        return self._names.prefix

    @property
    def offset_format(self) -> OffsetFormat:
        return OffsetFormat.QUEUE

    @property
    def unsettled_max(self) -> int:
        return self._options.prefetch

    @property
    def unsettled_span_max(self) -> timedelta:
        return ACKNOWLEDGEMENT_TIMEOUT

    def was_delivered(self, event: ReceivedEvent) -> bool:
        return DELIVERIES in event.system_properties

    def set_expiration(self, expiration: timedelta) -> None:
        self._heartbeat = self._options.heartbeat or expiration / HEARTBEATS_PER_EXPIRATION

    @property
    def heartbeat_s(self) -> int:
        """The heartbeat interval to request from the broker, in whole seconds."""
        return max(1, math.floor(self._heartbeat.total_seconds()))

    async def open(self) -> None:
        if self._broker is None:
            self._broker = Broker(
                self._url,
                heartbeat_s=self.heartbeat_s,
                timeout=self._options.connect_timeout,
            )
            self._measuring = asyncio.create_task(self._measure())

    async def close(self) -> None:
        receivers, self._receivers = list(self._receivers.values()), {}
        for receiver in receivers:
            await receiver.close()
        if self._measuring is not None:
            self._measuring.cancel()
            await end([self._measuring])
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.close()

    async def check_consumer_group(self, name: str) -> None:
        queues = {self._names.queue(n): QUEUE_ARGUMENTS for n in range(self._names.count)}
        try:
            await self._opened().declare(queues)
        except (SourceRejectedError, SuspectSettingError) as error:
            reason = str(error).rstrip(".")
            raise ConfigurationError(
                f"the queues {self._names.prefix}-P0 to {self._names.queue(self._names.count - 1)} "
                f"cannot be used by consumer group {name!r}. {reason}. Check the address, the "
                "user's rights, and whether a queue of this name exists with other arguments"
            ) from error

    async def partition_ids(self) -> Sequence[str]:
        return self._names.partition_ids

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (depth,) = await self._opened().depths([self._names.queue_of(partition_id)])
        receiver = self._receivers.get(partition_id)
        newest = depth - 1
        if receiver is not None and receiver.last_enqueued is not None:
            newest = receiver.last_enqueued.sequence_number
        return PartitionProperties(
            partition_id=partition_id,
            beginning_sequence_number=0,
            last_enqueued_sequence_number=newest,
            last_enqueued_offset=offset_text(newest),
            last_enqueued_time=None,
            is_empty=depth == 0,
        )

    async def open_receiver(
        self,
        consumer_group: str,  # noqa: ARG002 - queues have no groups
        partition_id: str,
        position: EventPosition,
    ) -> QueueReceiver:
        queue, number = self._names.queue_of(partition_id), position.sequence_number
        following = 0 if number is None else number + (not position.is_inclusive)
        receiver = RabbitReceiver(following, timeout=self._options.connect_timeout)
        consumer = await self._opened().consume(
            queue, self._options.prefetch, receiver.deliver, receiver.end
        )
        receiver.attach(consumer)
        self._receivers[partition_id] = receiver
        return receiver

    def _opened(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        return self._broker

    async def _measure(self) -> None:
        """Request periodically how many messages wait; without an answer, keep the last number."""
        while True:
            await asyncio.sleep(self._options.depth_interval.total_seconds())
            self._receivers = {p: r for p, r in self._receivers.items() if not r.is_over}
            # A copy, because receivers are opened while the broker answers.
            receivers = list(self._receivers.values())
            if not receivers:
                continue
            queues = [self._names.queue_of(p) for p in self._receivers]
            try:
                depths = await self._opened().depths(queues)
            except SourceError:
                continue
            for receiver, depth in zip(receivers, depths, strict=True):
                receiver.depth = depth
