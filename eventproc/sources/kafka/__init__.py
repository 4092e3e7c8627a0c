"""Events of any Kafka broker, and of Event Hubs through its Kafka endpoint.

Layers, each of which imports only those below it:

- ``source``, ``publisher``
- ``receiver``
- ``reader``, ``queries``
- ``feed``, ``client``, ``columns``, which needs Arrow
- ``batch``
- ``event``
- ``offsets``, ``errors``, ``options``, ``producer_config``, ``address``

Only ``client`` imports ``confluent_kafka``.
"""

from eventproc._base import public as _public
from eventproc._base.extras import needing

with needing("kafka"):
    from eventproc.sources.kafka._options import KafkaOptions
    from eventproc.sources.kafka._publisher import KafkaPublisher
    from eventproc.sources.kafka._source import KafkaEventSource

__all__ = ["KafkaEventSource", "KafkaOptions", "KafkaPublisher"]

_public.set_module(__name__, globals())
