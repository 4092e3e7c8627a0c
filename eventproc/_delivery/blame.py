"""Finds which events of a call have failed, from the error that the handler raised."""

from collections.abc import Callable, Mapping, Sequence

from eventproc._core.delivery.failure import FailureReport, blame
from eventproc._delivery.handler import BatchError, RowError
from eventproc.errors import HandlerAbortedError, HandlerCancelledError
from eventproc.models import ReceivedEvent


def blamed(
    part: Sequence[ReceivedEvent],
    error: Exception,
    unhandled: Callable[[Sequence[ReceivedEvent]], Sequence[ReceivedEvent]],
) -> FailureReport:
    """Return which events of the call failed, which may have, and which are done.

    Args:
        part: The events of the call.
        error: What the call raised, as ``checked`` returned it.
        unhandled: Returns those of its arguments that are not known to be handled.
    """
    failed: Mapping[int, Exception] = {}
    untried: Sequence[ReceivedEvent] = ()
    if isinstance(error, BatchError):
        failed = {event.sequence_number: why for event, why in error.failed}
        untried = error.untried
    elif isinstance(error, RowError):
        failed = {part[row].sequence_number: error.shown for row in error.rows}
    numbers = {event.sequence_number for event in untried}
    return blame(unhandled(part), error, failed=failed, untried=numbers)


def checked(
    error: Exception, part: Sequence[ReceivedEvent], unfinished: ReceivedEvent | None = None
) -> Exception:
    """Return the error, as one of its event where it could not say so itself.

    Args:
        error: What the call raised. Instead of one that names a row that the call did not have, a
            ``ValueError`` is returned.
        part: The events of the call.
        unfinished: The event of ``process_event``, which catches no ``BaseException``.
    """
    if unfinished is not None and isinstance(error, HandlerAbortedError | HandlerCancelledError):
        return BatchError([(unfinished, error)], untried=[e for e in part if e != unfinished])
    if isinstance(error, RowError) and error.rows[-1] >= len(part):
        wrong = ValueError(f"RowError names row {error.rows[-1]}, of a batch of {len(part)} rows")
        wrong.__cause__ = error
        return wrong
    return error


def shown_error(error: Exception) -> Exception:
    """Return the error to report: that of the only failed event, if one is named."""
    return error.shown if isinstance(error, BatchError | RowError) else error
