"""Publishes events to an event hub, in batches that are as large as the link allows.

Rule: a batch has events of one partition, of one partition key, or without either. The service
stores it as a whole or not at all.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Final, Self

from eventproc._base.retries import Attempts, Backoff
from eventproc._base.settings import SECRET, checked
from eventproc._base.tasks import together
from eventproc.errors import (
    ConfigurationError,
    EventRefusedError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import OutgoingEvent, PropertyValue
from eventproc.ports import EventPublisher
from eventproc.sources._amqp.encoding import encode_event
from eventproc.sources.eventhubs import _client as azure_client
from eventproc.sources.eventhubs._options import EventHubOptions
from eventproc.sources.eventhubs._producer import Batch, Producer

BACKOFF: Final = Backoff(maximum=timedelta(seconds=5))
"""Waits between attempts to send a batch."""

CONNECTIONS_MAX: Final = 8
"""Most connections of a publisher."""

KEYS_FOR_A_CONNECTION: Final = 100
"""A call of ``publish`` uses one more connection for each of this many partition keys.

A batch has one key, and the client waits for its acknowledgement before it sends the next batch. So
with many keys the round trips limit the throughput, and connections share them."""

Target = tuple[str | None, str | None]
"""Partition id and partition key of a batch; at most one of them is set."""

Link = tuple[str | None, int]
"""A link of the client: partition id, or ``None`` for all partitions; number of its connection."""


class EventHubPublisher(EventPublisher):
    """Publishes to one event hub. It connects when it is opened.

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the hub, which must exist.
        credential: as for ``EventHubSource``; it needs the right to send.
        options: how to connect.
    """

    @checked
    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: Annotated[azure_client.Credential, SECRET],
        *,
        options: EventHubOptions | None = None,
    ) -> None:
        self._hub = azure_client.EventHubAddress(
            fully_qualified_namespace, eventhub_name, credential, options
        )
        self._producer_by_number: dict[int, Producer] = {}
        self._partition_ids: frozenset[str] = frozenset()

    @classmethod
    @checked
    def from_connection_string(
        cls,
        conn_str: Annotated[str, SECRET],
        *,
        eventhub_name: str | None = None,
        options: EventHubOptions | None = None,
    ) -> Self:
        """Build a publisher from a connection string of the namespace or of the hub."""
        address, options = azure_client.parse_address(conn_str, eventhub_name, options)
        return cls(*address, options=options)

    @property
    def takes_both(self) -> bool:
        return False

    async def open(self) -> None:
        """Connect, and ask for the partitions.

        Raises:
            ConfigurationError: the hub or its host does not exist, or the service refuses the
                credential.
            SourceUnavailableError: no answer.
        """
        await self._hub.open()
        try:
            self._partition_ids = frozenset(await self._request_partition_ids())
        except (SourceRejectedError, SuspectSettingError) as error:
            await self.close()
            explained = error.with_remedy(". Check its name and that the credential may send")
            raise ConfigurationError(f"{self._hub} cannot be published to: {explained}") from error

    async def close(self) -> None:
        self._hub.close()
        producers, self._producer_by_number = self._producer_by_number, {}
        for producer in producers.values():
            await producer.close()

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        indexes_by_target: dict[Target, list[int]] = {}
        for index, event in enumerate(events):
            indexes_by_target.setdefault(_target(index, event), []).append(index)
        attempts = Attempts(patience, BACKOFF, SourceUnavailableError)
        await self._check_partitions(indexes_by_target, attempts)

        async def over_link(number: int, targets: Sequence[Target]) -> None:
            for target in targets:
                data = ((i, _encoded(i, events[i])) for i in indexes_by_target[target])
                await self._publish_to(number, target, data, attempts)

        links = _links(indexes_by_target)
        await together(*(over_link(number, targets) for (_, number), targets in links.items()))

    async def _check_partitions(
        self, indexes_by_target: Mapping[Target, Sequence[int]], attempts: Attempts
    ) -> None:
        """Refuse partitions that the hub does not have: the client would report an outage."""
        wanted = {partition_id for partition_id, _ in indexes_by_target if partition_id is not None}
        if wanted <= self._partition_ids:
            return
        self._partition_ids = frozenset(await attempts(self._request_partition_ids))
        if unknown := sorted(wanted - self._partition_ids):
            raise EventRefusedError(
                indexes_by_target[unknown[0], None][0],
                f"{self._hub} has no partition {unknown[0]!r}: it has "
                f"{', '.join(sorted(self._partition_ids, key=lambda p: (len(p), p)))}",
            )

    async def _publish_to(
        self, number: int, target: Target, events: Iterable[tuple[int, bytes]], attempts: Attempts
    ) -> None:
        """Send events of one target over one connection, batch by batch."""
        batch: Batch = await attempts(self._new_batch, number, target)
        for index, data in events:
            if batch.add(data):
                continue
            if len(batch):
                await attempts(self._send, number, target, batch)
                batch = await attempts(self._new_batch, number, target)
                if batch.add(data):
                    continue
            raise EventRefusedError(
                index,
                f"it is too large for {self._hub}: {batch.size_with(data)} bytes, and "
                f"the hub accepts at most {batch.bytes_max}",
            )
        await attempts(self._send, number, target, batch)

    async def _request_partition_ids(self) -> list[str]:
        async with self._connection(0) as producer:
            return await producer.partition_ids()

    async def _new_batch(self, number: int, target: Target) -> Batch:
        partition_id, partition_key = target
        async with self._connection(number) as producer:
            return await producer.new_batch(partition_id=partition_id, partition_key=partition_key)

    async def _send(self, number: int, target: Target, batch: Batch) -> None:
        async with self._connection(number) as producer:
            await producer.send_batch(batch, _shown(target))

    @asynccontextmanager
    async def _connection(self, number: int) -> AsyncIterator[Producer]:
        """Yield a connection; after a failure close it, so that the next attempt makes another.

        Other links of this publisher may use the same one, or have replaced it already.
        """
        producer = self._connected(number)
        try:
            yield producer
        except SourceUnavailableError:
            if self._producer_by_number.get(number) is producer:
                del self._producer_by_number[number]
            await producer.close()
            raise

    def _connected(self, number: int) -> Producer:
        if number not in self._producer_by_number:
            self._producer_by_number[number] = Producer(self._hub)
        return self._producer_by_number[number]


def _links(targets: Iterable[Target]) -> dict[Link, list[Target]]:
    """Divide targets among links, which send concurrently.

    A client has one link for each partition, and one for all events without a partition.
    """
    keyed = [target for target in targets if target[1] is not None]
    connection_count = min(CONNECTIONS_MAX, 1 + len(keyed) // KEYS_FOR_A_CONNECTION)
    links: dict[Link, list[Target]] = {}
    for place, target in enumerate(keyed):
        links.setdefault((None, place % connection_count), []).append(target)
    for target in targets:
        if target[1] is None:
            links.setdefault((target[0], 0), []).append(target)
    return links


def _target(index: int, event: OutgoingEvent) -> Target:
    if event.partition_id is not None and event.partition_key is not None:
        raise EventRefusedError(
            index,
            f"it has a partition ({event.partition_id!r}) and a partition key "
            f"({event.partition_key!r}), which an event hub does not accept: give one of them",
        )
    if event.partition_key == "" or event.partition_id == "":
        raise EventRefusedError(
            index, "its partition or partition key is an empty text: give null instead"
        )
    try:
        (event.partition_key or "").encode()
    except UnicodeEncodeError as error:
        raise EventRefusedError(index, f"its partition key cannot be encoded: {error}") from error
    return event.partition_id, event.partition_key


def _encoded(index: int, event: OutgoingEvent) -> bytes:
    if event.body is None:
        raise EventRefusedError(index, "it has no body, and an event hub has no such events")
    properties: dict[str, PropertyValue] = {}
    for name, value in event.properties.items():
        if isinstance(value, list):
            raise EventRefusedError(
                index,
                f"its property {name!r} is a list, and an event hub has only text, numbers, "
                "booleans, bytes and null",
            )
        properties[name] = value
    try:
        return encode_event(
            event.body,
            event.partition_key,
            properties,
            message_id=event.message_id,
            correlation_id=event.correlation_id,
            content_type=event.content_type,
        )
    except ValueError as error:
        raise EventRefusedError(index, f"it cannot be encoded: {error}") from error


def _shown(target: Target) -> str:
    """Return where a batch goes, for messages. A key may be personal, so it is not shown."""
    partition_id, partition_key = target
    if partition_id is not None:
        return f"partition {partition_id!r} of "
    return "" if partition_key is None else "the partition of one key of "
