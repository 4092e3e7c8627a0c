"""Partition queues of RabbitMQ: keyed messages, in order, on durable quorum queues.

Only ``_amqp`` and ``_frames`` import ``aio_pika``.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("rabbitmq"):
    from eventproc.sources.rabbitmq._dead_letters import (
        RabbitDeadLetterReader,
        RabbitDeadLetterSink,
    )
    from eventproc.sources.rabbitmq._names import QueueHash
    from eventproc.sources.rabbitmq._publisher import PartitionPublisher, QueuePublisher
    from eventproc.sources.rabbitmq._source import QueueOptions, RabbitQueues

__all__ = [
    "PartitionPublisher",
    "QueueHash",
    "QueueOptions",
    "QueuePublisher",
    "RabbitDeadLetterReader",
    "RabbitDeadLetterSink",
    "RabbitQueues",
]

_public_names.set_module(__name__, globals())
