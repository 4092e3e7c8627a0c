"""The settings of ``RabbitQueues``."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc.settings import Count, PositiveSpan, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Every setting of a ``RabbitQueues``. The defaults suit most queues."""

    prefetch: Count = 1000
    """Most unacknowledged messages of each queue. Messages are acknowledged after a checkpoint, so
    the processor writes one when half of this number are handled, at the latest."""

    depth_interval: PositiveSpan = timedelta(seconds=5)
    """How often each owner asks the broker how many messages wait in its queue: this is the lag."""

    connect_timeout: PositiveSpan = timedelta(seconds=15)
    """Longest time for one request to the broker, connecting included."""

    heartbeat: PositiveSpan | None = None
    """The heartbeat interval, in whole seconds. The broker ends a connection two to three intervals
    after it last received something, and then delivers the queues of a suspended process to another
    consumer. By default a fifth of ``ownership_expiration``, so that a queue is free before the
    partition's lease has expired."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)


HEARTBEAT_S: Final = 10
"""The heartbeat of publishers, dead letters, and sources without a processor."""

CONNECT_TIMEOUT: Final = QueueOptions().connect_timeout
"""The time limit of requests of publishers and dead letters."""

ACKNOWLEDGEMENT_TIMEOUT: Final = timedelta(minutes=30)
"""The broker's default of ``consumer_timeout``. Its value cannot be asked over AMQP."""

TOO_LATE: Final = (
    ". A message was not acknowledged within the broker's consumer_timeout, and comes again: a "
    "call of the handler took too long, or too many messages waited before it. Raise "
    "consumer_timeout (rabbitmq.conf, or a policy of the queue), set failover_timeout below it, or "
    "lower QueueOptions.prefetch"
)
