"""Errors that occur only inside Spark."""

from eventproc.errors import EventProcError, SourceError


class EventsLostError(SourceError):
    """Retention deleted events before the source could read them.

    With ``failOnDataLoss=false`` the source counts and skips them instead. A hub that was deleted
    and created again can cause this error, too.
    """

    __module__ = "spark_integration"


class FencedError(EventProcError):
    """Another writer has changed a checkpoint of this batch; it was not overwritten.

    The writer is another driver of the same query, another query, or a processor, in the same
    consumer group. It handles the events that this driver did not commit.
    """

    __module__ = "spark_integration"


class OrderLostError(EventProcError):
    """The rows of a partition did not reach the sink in order and in one task.

    The query shuffles rows between source and sink, or ``maxEventsPerTask`` divided the partition
    among several tasks.
    """

    __module__ = "spark_integration"


class HandlerFailedError(EventProcError):
    """The handler failed ``maxAttempts`` times; its own error is the cause."""

    __module__ = "spark_integration"


class RefusedInSparkError(EventProcError):
    """A handler used a part of its context that a Spark sink does not support."""

    __module__ = "spark_integration"


class PublishFailedError(EventProcError):
    """Rows of a task cannot be published, or may not be published; the message names them.

    Spark tries the task again, which publishes its other rows again.
    """

    __module__ = "spark_integration"
