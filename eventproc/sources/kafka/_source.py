"""A Kafka topic as an ``EventSource``."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Self

from eventproc._base.identity import AnyTokenCredential
from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import EventPosition, OffsetFormat, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.kafka._address import (
    Tokens,
    TopicAddress,
    address_in,
    address_of,
    address_with_identity,
)
from eventproc.sources.kafka._client import Consumer
from eventproc.sources.kafka._errors import TokenError
from eventproc.sources.kafka._feed import Feed
from eventproc.sources.kafka._offsets import Bounds, last_ms_before, start_offset
from eventproc.sources.kafka._options import KafkaOptions, check_config
from eventproc.sources.kafka._queries import AdminQueries, properties_question
from eventproc.sources.kafka._reader import Reader
from eventproc.sources.kafka._receiver import KafkaReceiver

_DIGITS_MAX = 9
"""Most digits of a partition id: Kafka's partition numbers have 32 bits."""

_ANY_GROUP = "eventproc"
"""The group of the client for metadata requests, which belong to no group; a client needs one."""


class KafkaEventSource(EventSource):
    """Reads events from one Kafka topic. It connects when it is opened.

    Ownership and checkpoints are kept in the processor's store: the source joins no Kafka group and
    commits nothing. A consumer group is only a name under which records are kept.

    Args:
        bootstrap_servers: ``host:port``, or several, separated by commas.
        topic: the topic's name.
        namespace: a name for the cluster, under which records are kept. The default is the server
            if there is only one; for Event Hubs it is the host name, the same as over AMQP.
        config: settings for librdkafka, by its names: security, fetch sizes. Settings for group
            membership, commits and positions are refused.
        options: how to read.

    Raises:
        ConfigurationError: a name is not valid, or a setting is refused.
    """

    @checked
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str,
        namespace: str | None = None,
        config: Annotated[Mapping[str, object] | None, SECRET] = None,
        options: KafkaOptions | None = None,
    ) -> None:
        self._address = address_of(bootstrap_servers, topic, namespace, config)
        check_config(self._address.settings)
        self._options = options or KafkaOptions()
        self._is_open = False
        self._making = asyncio.Lock()  # Renewed by ``open``: it belongs to a loop.
        """A client is made in a thread, and once."""

        self._queries: AdminQueries | None = None
        self._readers: dict[str, Reader] = {}
        self._feeds: dict[int, Feed] = {}
        """The feed of each partition that was opened last, in any group."""

    @classmethod
    @checked
    def from_connection_string(
        cls,
        conn_str: Annotated[str, SECRET],
        *,
        topic: str | None = None,
        bootstrap_servers: str | None = None,
        config: Annotated[Mapping[str, object] | None, SECRET] = None,
        options: KafkaOptions | None = None,
    ) -> Self:
        """Build a source for Event Hubs' Kafka endpoint, which the Basic tier does not have.

        Args:
            conn_str: of the namespace or of the event hub; its policy needs the right to listen.
                With ``UseDevelopmentEmulator=true`` the source connects to port 9092, as the
                official emulator has it.
            topic: the event hub; required unless the string ends in ``EntityPath=...``.
            bootstrap_servers: servers to connect to instead of those of the connection string.
            config: as for the class.
            options: how to read.

        Raises:
            ConfigurationError: the string cannot work; the message does not repeat the key.
        """
        return cls._at(address_in(conn_str, topic, bootstrap_servers, config), options)

    @classmethod
    @checked
    def with_identity(
        cls,
        fully_qualified_namespace: str,
        topic: str,
        credential: Annotated[AnyTokenCredential, SECRET],
        *,
        bootstrap_servers: str | None = None,
        config: Annotated[Mapping[str, object] | None, SECRET] = None,
        options: KafkaOptions | None = None,
    ) -> Self:
        """Build a source for Event Hubs' Kafka endpoint that uses tokens of Entra ID.

        Args:
            fully_qualified_namespace: such as ``contoso.servicebus.windows.net``.
            topic: the event hub.
            credential: of ``azure.identity`` or ``azure.identity.aio``; it is not closed.
            bootstrap_servers: servers to connect to instead of the namespace's port 9093.
            config: as for the class, without ``oauth_cb``.
            options: how to read.

        Raises:
            ConfigurationError: a name is not valid, or a setting is refused.
        """
        address = address_with_identity(
            fully_qualified_namespace, topic, credential, bootstrap_servers, config
        )
        return cls._at(address, options)

    @classmethod
    def _at(cls, address: TopicAddress, options: KafkaOptions | None) -> Self:
        return cls(
            address.bootstrap_servers,
            topic=address.topic,
            namespace=address.namespace,
            config=address.settings,
            options=options,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address.bootstrap_servers!r}, {self._topic!r})"

    @property
    def _topic(self) -> str:
        return self._address.topic

    @property
    def fully_qualified_namespace(self) -> str:
        return self._address.namespace

    @property
    def eventhub_name(self) -> str:
        return self._address.topic

    @property
    def offset_format(self) -> OffsetFormat:
        return OffsetFormat.KAFKA

    async def open(self) -> None:
        if not self._is_open:
            self._making = asyncio.Lock()
        self._is_open = True
        if self._address.tokens is None:  # Otherwise the first request connects: it may lack one.
            await self._open_queries()

    async def close(self) -> None:
        self._is_open = False
        readers, self._readers = list(self._readers.values()), {}
        queries, self._queries = self._queries, None
        for reader in readers:
            await reader.close()
        if queries is not None:
            await queries.close()

    async def check_consumer_group(self, name: str) -> None:
        try:
            await self.partition_ids()
        except TokenError as error:
            raise ConfigurationError(str(error)) from error
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(
                f"topic {self._topic!r} at {self._address.bootstrap_servers} cannot be read in "
                f"consumer group {name!r}. {error}. Check the servers, the topic's name, and the "
                "security settings"
            ) from error

    async def partition_ids(self) -> Sequence[str]:
        queries = await self._open_queries()
        count = await queries.ask(
            f"requesting the partitions of {self!r} failed",
            lambda consumer, timeout_s: consumer.partition_count(timeout_s),
        )
        return tuple(str(number) for number in range(count))

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        partitions = [self._number(partition_id) for partition_id in partition_ids]
        named = ", ".join(map(repr, partition_ids))
        queries = await self._open_queries()
        return await queries.ask(
            f"requesting properties of partition {named} from {self!r} failed",
            properties_question(partitions),
        )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        partition, queries = self._number(partition_id), await self._open_queries()
        what = f"opening partition {partition_id!r} of {self!r} failed"
        bounds = await queries.ask(
            what, lambda consumer, timeout_s: consumer.bounds(partition, timeout_s)
        )
        start = start_offset(partition_id, position, bounds)
        time, is_inclusive = position.enqueued_time, position.is_inclusive
        after_ms = None if time is None else last_ms_before(time, is_inclusive=is_inclusive)
        if after_ms is not None:
            start = await self._start_after(queries, what, partition, after_ms, bounds)
        former = self._feeds.get(partition)
        feed = Feed(
            partition,
            start,
            after_ms=after_ms,
            room=self._options.prefetch,
            room_bytes=self._options.prefetch_bytes,
            leader_epoch=None if former is None else former.leader_epoch_before(start),
        )
        self._feeds[partition] = feed
        feed.high = bounds.high
        feed.is_of_event_hubs = self._address.is_of_event_hubs
        reader = await self._reader(consumer_group)
        try:
            await reader.open(feed)
        except BaseException:
            reader.release(feed)
            raise
        return KafkaReceiver(reader, feed)

    async def _start_after(
        self, queries: AdminQueries, what: str, partition: int, after_ms: int, bounds: Bounds
    ) -> int:
        """Return the offset of the first event that is newer than a time, or the end."""
        found = await queries.ask(
            what,
            # Below 0, Kafka has other meanings: -1 is the end.
            lambda consumer, timeout_s: consumer.offset_at(
                partition, max(0, after_ms + 1), timeout_s
            ),
        )
        return bounds.high if found is None else max(found, bounds.low)

    def _number(self, partition_id: str) -> int:
        is_number = partition_id.isascii() and partition_id.isdigit()
        if not is_number or len(partition_id) > _DIGITS_MAX:
            raise SourceRejectedError(
                f"topic {self._topic!r} has no partition {partition_id!r}: Kafka's partition ids "
                "are numbers"
            )
        return int(partition_id)

    async def _open_queries(self) -> AdminQueries:
        if (tokens := self._address.tokens) is not None and self._is_open:
            await self._check_token(tokens)
        async with self._making:
            if self._queries is None:
                consumer = await self._make_consumer(_ANY_GROUP)
                renew = partial(Consumer, self._address, _ANY_GROUP)
                self._queries = AdminQueries(consumer, renew, self._options.connect_timeout)
            return self._queries

    async def _check_token(self, tokens: Tokens) -> None:
        try:
            await tokens.check()
        except TokenError as error:
            raise TokenError(f"{self!r} cannot be read: {error}") from error

    async def _reader(self, group: str) -> Reader:
        """Return the reader of a group; create one if there is none or the former has ended."""
        async with self._making:
            reader = self._readers.get(group)
            if reader is None or reader.is_over:
                consumer = await self._make_consumer(group)
                name = f"eventproc-kafka-{group}"
                reader = Reader(consumer, name, self._options.connect_timeout)
                self._readers[group] = reader
            return reader

    async def _make_consumer(self, group: str) -> Consumer:
        if not self._is_open:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        if self._address.tokens is None:
            return Consumer(self._address, group)
        consumer = await asyncio.to_thread(Consumer, self._address, group)
        if not self._is_open:
            await asyncio.to_thread(consumer.close)
            raise SourceUnavailableError("the source is closed")
        return consumer
