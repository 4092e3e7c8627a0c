"""Partition queues of RabbitMQ: keyed messages, in order, on durable quorum queues.

Layers, each of which imports only those below it:

- ``source``, ``publisher``, ``dead_letters``
- ``receiver``, ``held_messages``
- ``amqp``
- ``event``
- ``frames``, ``names``, ``options``

Only ``amqp`` and ``frames`` import ``aio_pika``.
"""

from eventproc.extras import needing

with needing("rabbitmq"):
    from eventproc.sources.rabbitmq.dead_letters import (
        RabbitDeadLetterReader,
        RabbitDeadLetterSink,
    )
    from eventproc.sources.rabbitmq.names import QueueHash
    from eventproc.sources.rabbitmq.options import QueueOptions
    from eventproc.sources.rabbitmq.publisher import PartitionPublisher, QueuePublisher
    from eventproc.sources.rabbitmq.source import RabbitQueues

__all__ = [
    "PartitionPublisher",
    "QueueHash",
    "QueueOptions",
    "QueuePublisher",
    "RabbitDeadLetterReader",
    "RabbitDeadLetterSink",
    "RabbitQueues",
]
