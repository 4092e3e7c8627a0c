"""Events of any Kafka broker, and of Event Hubs through its Kafka endpoint.

Floors: address, options, position, event, refusal (values) < feed < vendor < reader, asker <
receiver < source. Only ``vendor`` imports ``confluent_kafka``.
"""

from eventproc.sources.kafka.options import KafkaOptions
from eventproc.sources.kafka.source import KafkaEventSource

__all__ = ["KafkaEventSource", "KafkaOptions"]
