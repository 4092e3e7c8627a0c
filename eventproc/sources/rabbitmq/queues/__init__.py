"""Partition queues of RabbitMQ: keyed messages, in order, on durable quorum queues.

Layers, each of which imports only those below it:

- ``source``, ``publisher``, ``dead_letters``
- ``receiver``, ``held_messages``
- ``amqp``
- ``event``, ``names``, ``options``

Only ``amqp`` imports ``aio_pika``.
"""

from eventproc.extras import needing

with needing("rabbitmq"):
    from eventproc.sources.rabbitmq.queues.dead_letters import (
        RabbitDeadLetterReader,
        RabbitDeadLetterSink,
    )
    from eventproc.sources.rabbitmq.queues.names import QueueHash
    from eventproc.sources.rabbitmq.queues.options import QueueOptions
    from eventproc.sources.rabbitmq.queues.publisher import PartitionPublisher, QueuePublisher
    from eventproc.sources.rabbitmq.queues.source import RabbitQueues

__all__ = [
    "PartitionPublisher",
    "QueueHash",
    "QueueOptions",
    "QueuePublisher",
    "RabbitDeadLetterReader",
    "RabbitDeadLetterSink",
    "RabbitQueues",
]
