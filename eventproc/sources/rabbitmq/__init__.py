"""Events of RabbitMQ streams.

Layers, each of which imports only those below it:

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
    from eventproc.sources.rabbitmq.options import RabbitStreamOptions
    from eventproc.sources.rabbitmq.source import RabbitStreamSource

__all__ = ["RabbitStreamOptions", "RabbitStreamSource"]
