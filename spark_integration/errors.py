"""What only those can meet who work inside Spark."""

from eventproc.errors import EventProcError, SourceError


class EventsLostError(SourceError):
    """The hub no longer has events that were to be read: retention has passed them.

    With ``failOnDataLoss=false`` they are counted and skipped instead. A hub that was deleted and
    created anew gives this error, too.
    """


class FencedError(EventProcError):
    """Somebody else has written a checkpoint of this batch's partitions: nothing goes back.

    Another driver of the same query, another query, or a processor works for the same consumer
    group. What this driver did not commit, whoever took over handles.
    """


class OrderLostError(EventProcError):
    """The rows of a partition did not come to the sink in order, in one task.

    A shuffle lies in between, or the source cut the partition into several tasks.
    """


class HandlerFailedError(EventProcError):
    """The handler failed as often as it may; its own error is the cause."""


class RefusedInSparkError(EventProcError):
    """A handler asked its context for what cannot be had in a Spark sink; the message says why."""
