"""Topics of a real Kafka broker, to which librdkafka publishes."""

import asyncio
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventproc.ports import EventSource
from eventproc.sources.kafka import KafkaEventSource
from eventproc.testing import SourceBench
from tests.servers.kafka_broker import KafkaBroker


class KafkaTopic:
    """A topic with a producer."""

    def __init__(self, broker: KafkaBroker, name: str, partitions: int = 3) -> None:
        self.broker = broker
        self.name = name
        self._settings: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
        }
        self.admin = AdminClient(self._settings)
        self.partitions = partitions
        self.create()

    def create(self) -> None:
        """Create the topic on the broker."""
        made = self.admin.create_topics([NewTopic(self.name, num_partitions=self.partitions)])
        made[self.name].result(timeout=20)
        # This broker reports the beginning of the last batch as the end of a partition. And a
        # producer that knew an earlier topic of this name may not send to a new partition.
        self.producer = Producer(self._settings | {"batch.num.messages": 1})

    def source(self, **arguments: Any) -> KafkaEventSource:
        """Return an unopened source on the topic."""
        return KafkaEventSource(self.broker.bootstrap_servers, topic=self.name, **arguments)

    def publish_batch(self, partition: int, *bodies: bytes) -> None:
        """Publish events as one batch, whose end the broker reports too early."""
        producer = Producer(self._settings | {"linger.ms": 500})
        for body in bodies:
            producer.produce(self.name, body, partition=partition)
        assert producer.flush(20) == 0

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
        """Create the topic again with one more partition: this broker cannot add partitions."""
        topic = self.topic
        await asyncio.to_thread(topic.admin.delete_topics([topic.name])[topic.name].result, 20)
        topic.partitions += 1
        await asyncio.to_thread(topic.create)
        return True
