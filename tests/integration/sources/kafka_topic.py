"""Topics of a real Kafka broker, to which librdkafka publishes."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from eventproc.ports import EventSource
from eventproc.sources.kafka import KafkaEventSource
from eventproc.testing import SourceBench
from tests.servers.kafka_broker import KafkaBroker


class KafkaTopic:
    """A topic with a producer."""

    def __init__(
        self,
        broker: KafkaBroker,
        name: str,
        partitions: int = 3,
        *,
        security: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        """Create the topic, with these settings of a topic (``_`` stands for a dot).

        Args:
            broker: where.
            name: of the topic.
            partitions: how many.
            security: settings of a client that the broker takes.
            settings: of the topic.
        """
        self.broker = broker
        self.name = name
        self.client: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
            **(security or {}),
        }
        self.admin = AdminClient(self.client)
        self.partitions = partitions
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.create()

    def create(self) -> None:
        """Create the topic on the broker."""
        made = self.admin.create_topics(
            [NewTopic(self.name, self.partitions, config=self._settings)]
        )
        made[self.name].result(timeout=20)
        self._wait_until_it_is_known()
        # A producer that knew an earlier topic of this name may not send to a new partition.
        self.producer = self._new_producer()

    def _new_producer(self) -> Producer:
        """Return a producer that keeps the order of events when it repeats a request.

        One with idempotence would end for good when a broker has lost events.
        """
        return Producer(self.client | {"max.in.flight.requests.per.connection": 1})

    def _wait_until_it_is_known(self) -> None:
        """Return when the broker knows what the controller has changed, a moment before."""
        until_s = time.monotonic() + 20
        while True:
            found = self.admin.list_topics(self.name, timeout=20).topics[self.name].partitions
            if len(found) == self.partitions and all(one.leader >= 0 for one in found.values()):
                return
            assert time.monotonic() < until_s, f"the broker has {len(found)} partitions"
            time.sleep(0.02)

    def grow(self) -> None:
        """Add a partition."""
        self.partitions += 1
        grown = self.admin.create_partitions([NewPartitions(self.name, self.partitions)])
        grown[self.name].result(timeout=20)
        self._wait_until_it_is_known()
        self.producer = self._new_producer()  # The former looks at partitions every 5 minutes.

    def source(self, **arguments: Any) -> KafkaEventSource:
        """Return an unopened source on the topic."""
        return KafkaEventSource(self.broker.bootstrap_servers, topic=self.name, **arguments)

    def publish(self, partition: int, *bodies: bytes | None, **message: Any) -> None:
        """Publish events, in order."""
        for body in bodies:
            self.producer.produce(self.name, body, partition=partition, **message)
        assert self.producer.flush(20) == 0


class KafkaBench(SourceBench):
    """A topic for the contract of sources."""

    def __init__(self, topic: KafkaTopic) -> None:
        self.topic = topic

    def source(self) -> EventSource:
        return self.topic.source()

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        await asyncio.to_thread(self.topic.publish, int(partition_id), *bodies)

    async def grow(self) -> bool:
        await asyncio.to_thread(self.topic.grow)
        return True
