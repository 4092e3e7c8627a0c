"""The settings of ``RabbitQueues``."""

from dataclasses import dataclass
from datetime import timedelta

from eventproc.settings import Count, PositiveSpan, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Every setting of a ``RabbitQueues``. The defaults suit most queues."""

    prefetch: Count = 1000
    """Most messages of each queue that the broker sends ahead of a checkpoint. Messages are
    acknowledged after a checkpoint, so one is written at half of this number at the latest."""

    depth_interval: PositiveSpan = timedelta(seconds=5)
    """How often each owner asks the broker how many messages wait in its queue: this is the lag."""

    connect_timeout: PositiveSpan = timedelta(seconds=15)
    """Longest time for one request to the broker, connecting included."""

    heartbeat: PositiveSpan | None = None
    """The broker ends a connection two to three times this long after its last sign of life, and
    gives the queues of a frozen process to the next one; whole seconds. By default a fifth of
    ``ownership_expiration``, so that a queue is free before its lease has expired."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)
