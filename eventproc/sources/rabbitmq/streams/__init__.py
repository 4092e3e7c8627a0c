"""RabbitMQ streams: a partition is a stream; positions are kept in the group's store.

Layers, each of which imports only those below it:

- ``dead_letters``
- ``source``
- ``receiver``, ``connections``
- ``client``
- ``feed``
- ``credit``, ``event``, ``errors``, ``position``
- ``address``, ``chunk``, ``options``, ``partitions``

Only ``client`` imports ``rstream``.
"""

from eventproc.extras import needing

with needing("rabbitmq"):
    from eventproc.sources.rabbitmq.streams.dead_letters import RabbitStreamDeadLetterReader
    from eventproc.sources.rabbitmq.streams.options import StreamOptions
    from eventproc.sources.rabbitmq.streams.source import RabbitStreams

__all__ = ["RabbitStreamDeadLetterReader", "RabbitStreams", "StreamOptions"]
