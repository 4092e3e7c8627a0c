"""Events of any Kafka broker, and of Event Hubs through its Kafka endpoint.

Only ``_client`` imports ``confluent_kafka``, and only ``_columns`` needs Arrow.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("kafka"):
    from eventproc.sources.kafka._options import KafkaOptions
    from eventproc.sources.kafka._publisher import KafkaPublisher
    from eventproc.sources.kafka._source import KafkaEventSource

__all__ = ["KafkaEventSource", "KafkaOptions", "KafkaPublisher"]

_public_names.set_module(__name__, globals())
