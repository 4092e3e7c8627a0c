"""Every exception that eventproc raises on purpose.

Each level of the tree answers one question: is it ours, whose fault is it, may I retry?
Losing a race is not here: a claim that somebody else won is a result, not an error.
"""


class EventProcError(Exception):
    """The root: ``except EventProcError`` catches whatever this library raises on purpose."""


class ConfigurationError(EventProcError, ValueError):
    """Something given to the library cannot work; the message names it and the remedy.

    Raised when an object is built or when a processor starts, before anything is claimed;
    never later.
    """


class DuplicateOwnerError(ConfigurationError):
    """Another live processor of the group already uses this ``owner_id``.

    Raised by the one that came second. A processor that restarts after a crash under its old
    ``owner_id`` does *not* get this: nobody answers for the old one.
    """


class StoreError(EventProcError):
    """A checkpoint store could not do what it was asked."""


class StoreUnavailableError(StoreError):
    """The store did not answer, or answered that it cannot now. Safe to retry.

    A conditional write never raises this: it reports ``WriteOutcome.UNKNOWN``, because whether
    it took effect is exactly what is not known.
    """


class StoreCorruptError(StoreError):
    """What the store holds, or how it is set up, makes retrying pointless."""


class SourceError(EventProcError):
    """An event source could not do what it was asked."""


class SourceUnavailableError(SourceError):
    """The event source did not answer, or the connection broke. Safe to retry."""


class SourceRejectedError(SourceError):
    """The event source refuses for good: no such hub, consumer group or partition, no right."""


class ReceiverDisplacedError(SourceUnavailableError):
    """Another receiver took the link to this partition.

    A hint that the partition has a new owner, not a proof: only the ownership record tells.
    """


class DeadLetterError(EventProcError):
    """A dead letter is not known to be stored. Safe to retry: it may be stored twice."""


class OwnershipLostError(EventProcError):
    """This processor no longer owns the partition: stop, and never retry.

    Raised to a handler that asks for a checkpoint after the partition went to somebody else.
    """

    def __init__(self, partition_id: str) -> None:
        super().__init__(
            f"partition {partition_id!r} is no longer owned by this processor; "
            "its new owner goes on from the last stored checkpoint"
        )
        self.partition_id = partition_id


class HandlerCancelledError(EventProcError):
    """A handler, or a sink, ended as if it was cancelled, and nobody had cancelled it.

    It awaited something that was: a task or a future of its own. Its events are not handled.
    """

    def __init__(self, stray: BaseException) -> None:
        super().__init__(
            "CancelledError came out although nobody cancelled this: a task or future that was "
            "awaited in it had been cancelled"
        )
        self.__cause__ = stray


class StateTooLargeError(EventProcError, ValueError):
    """A handler's state is larger than the limit; the message gives both sizes in bytes."""


class StateUnreadableError(EventProcError, ValueError):
    """A handler's stored state is not what its codec reads; the message says where it differs."""


class StateRefusedError(EventProcError):
    """A handler set ``context.state`` although ``key_lanes`` is above 1.

    State belongs to one position: what is handled below it. With key lanes, events above the
    position are handled as well, so no state is that of a position.
    """

    def __init__(self, partition_id: str) -> None:
        super().__init__(
            f"state of partition {partition_id!r} was set although key_lanes is above 1: there, "
            "events above the position are handled as well, so no state belongs to a position; "
            "keep it elsewhere, or set key_lanes to 1"
        )
        self.partition_id = partition_id
