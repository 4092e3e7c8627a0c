"""A Kafka topic as an ``EventSource``."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Self

from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.models import EventPosition, Numbering, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.kafka.address import address_in, address_of
from eventproc.sources.kafka.asker import Asker, properties_question
from eventproc.sources.kafka.feed import Feed
from eventproc.sources.kafka.options import KafkaOptions, check_config
from eventproc.sources.kafka.position import Bounds, start_of, to_ms
from eventproc.sources.kafka.reader import Reader
from eventproc.sources.kafka.receiver import KafkaReceiver
from eventproc.sources.kafka.refusal import SuspectSettingError
from eventproc.sources.kafka.vendor import Consumer

_ANY_GROUP = "eventproc"
"""Questions about the topic itself belong to no group, but the client wants a name."""


class KafkaEventSource(EventSource):
    """Events from one Kafka topic. Nothing is connected before it is open.

    Ownership and checkpoints are those of the processor and its store: no Kafka group is joined
    and nothing is committed. A consumer group is a name under which records are kept.

    Args:
        bootstrap_servers: ``host:port``, or several with commas between.
        topic: the topic's name.
        namespace: a name for the cluster, under which records are kept. By default the one server
            that is given; for Event Hubs its host name, which is what it is over AMQP.
        config: settings for librdkafka, by its names: security, fetch sizes. Those that would
            break a promise are refused.
        options: how to read.

    Raises:
        ConfigurationError: a name cannot be one, or a setting is refused.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str,
        namespace: str | None = None,
        config: Mapping[str, object] | None = None,
        options: KafkaOptions | None = None,
    ) -> None:
        self._address = address_of(bootstrap_servers, topic, namespace)
        check_config(config or {})
        self._settings = dict(config or {})
        self._options = options or KafkaOptions()
        self._asker: Asker | None = None
        self._readers: dict[str, Reader] = {}

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        *,
        topic: str | None = None,
        bootstrap_servers: str | None = None,
        config: Mapping[str, object] | None = None,
        options: KafkaOptions | None = None,
    ) -> Self:
        """Build a source for Event Hubs' Kafka endpoint, which the Basic tier does not have.

        Args:
            conn_str: of the namespace or of the event hub; its policy needs the right to listen.
                With ``UseDevelopmentEmulator=true`` it leads to the official emulator's port 9092.
            topic: the event hub; needed unless the string ends in ``EntityPath=...``.
            bootstrap_servers: connect here instead.
            config: as for the class.
            options: how to read.

        Raises:
            ConfigurationError: the string cannot work; the message does not repeat the key.
        """
        address = address_in(conn_str, topic, bootstrap_servers)
        return cls(
            address.bootstrap_servers,
            topic=address.topic,
            namespace=address.namespace,
            config={**address.settings, **(config or {})},
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
    def numbering(self) -> Numbering:
        return Numbering.KAFKA

    async def open(self) -> None:
        if self._asker is None:
            self._asker = Asker(
                partial(self._make_consumer, _ANY_GROUP), self._options.connect_timeout
            )

    async def close(self) -> None:
        readers, self._readers = list(self._readers.values()), {}
        asker, self._asker = self._asker, None
        for reader in readers:
            await reader.close()
        if asker is not None:
            await asker.close()

    async def check_consumer_group(self, name: str) -> None:
        try:
            await self.partition_ids()
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(
                f"topic {self._topic!r} at {self._address.bootstrap_servers} cannot be read in "
                f"consumer group {name!r}. {error}. Check the servers, the topic's name, and the "
                "security settings"
            ) from error

    async def partition_ids(self) -> Sequence[str]:
        count = await self._open_asker().ask(
            f"{self!r} did not tell its partitions",
            lambda consumer, timeout_s: consumer.partition_count(timeout_s),
        )
        return tuple(str(number) for number in range(count))

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        partitions = [self._number(partition_id) for partition_id in partition_ids]
        return await self._open_asker().ask(
            f"{self!r} did not tell of partition {', '.join(map(repr, partition_ids))}",
            properties_question(partitions),
        )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        partition, asker = self._number(partition_id), self._open_asker()
        what = f"{self!r} did not open partition {partition_id!r}"
        bounds = await asker.ask(
            what, lambda consumer, timeout_s: consumer.bounds(partition, timeout_s)
        )
        start = start_of(partition_id, position, bounds)
        after_ms = None if position.enqueued_time is None else to_ms(position.enqueued_time)
        if after_ms is not None:
            start = await self._start_after(asker, what, partition, after_ms, bounds)
        feed = Feed(
            partition,
            start,
            after_ms=after_ms,
            room=self._options.prefetch,
            room_bytes=self._options.prefetch_bytes,
        )
        feed.high = bounds.high
        reader = self._reader(consumer_group)
        await reader.open(feed)
        return KafkaReceiver(reader, feed)

    async def _start_after(
        self, asker: Asker, what: str, partition: int, after_ms: int, bounds: Bounds
    ) -> int:
        """The offset of the first event that is newer than a time, or the end."""
        found = await asker.ask(
            what,
            lambda consumer, timeout_s: consumer.offset_at(partition, after_ms + 1, timeout_s),
        )
        return bounds.high if found is None else max(found, bounds.low)

    def _number(self, partition_id: str) -> int:
        if not (partition_id.isascii() and partition_id.isdigit()):
            raise SourceRejectedError(
                f"topic {self._topic!r} has no partition {partition_id!r}: Kafka's are numbers"
            )
        return int(partition_id)

    def _open_asker(self) -> Asker:
        if self._asker is None:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        return self._asker

    def _reader(self, group: str) -> Reader:
        """The reader of a group; another one where the former came to its end."""
        reader = self._readers.get(group)
        if reader is None or reader.is_over:
            reader = self._readers[group] = Reader(
                partial(self._make_consumer, group), f"eventproc-kafka-{group}"
            )
        return reader

    def _make_consumer(self, group: str) -> Consumer:
        return Consumer(self._address.bootstrap_servers, self._topic, group, self._settings)
