"""After a failed call of the handler: which events to try next, and when to give one up.

Rule 1: an event that is known to be handled is not delivered again.
Rule 2: if the error does not name an event, each event of the call is tried alone. That shows which
of them fails, and delivers each of the others only once more.
Rule 3: an event is given up only for failures of its own, not of the call that it was in.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from eventproc.models import ReceivedEvent

_E = TypeVar("_E", bound=ReceivedEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """What one failed call says of its events."""

    failed: Mapping[int, Exception] = field(default_factory=dict)
    """By sequence number: events known to have failed, and why."""

    suspect: frozenset[int] = frozenset()
    """Events of which at least one failed; it is not known which."""

    done: frozenset[int] = frozenset()
    """Events known to be handled although the call failed."""


@dataclass(slots=True)
class RetryState:
    """The failures of the events that are being retried."""

    alone: set[int] = field(default_factory=set)
    """Events to be tried alone."""

    attempt_by_number: dict[int, int] = field(default_factory=dict)
    error_by_number: dict[int, Exception] = field(default_factory=dict)

    failures_in_row: int = 0
    """Failed calls since an event was completed."""

    def note(self, report: FailureReport, transient: tuple[type[Exception], ...]) -> None:
        """Record a failed call; errors of the types *transient* do not count as attempts."""
        self.failures_in_row += 1
        self.alone |= report.suspect | report.failed.keys()
        for number, error in report.failed.items():
            self.error_by_number[number] = error
            if not isinstance(error, transient):
                self.attempt_by_number[number] = self.attempt_by_number.get(number, 0) + 1

    def exhausted(self, pending: Iterable[_E], attempts_max: int | None) -> list[_E]:
        """Return those of the pending events that failed *attempts_max* times, in order."""
        if attempts_max is None:
            return []
        count = self.attempt_by_number.get
        return [event for event in pending if count(event.sequence_number, 0) >= attempts_max]


def blame(part: Sequence[ReceivedEvent], error: Exception) -> FailureReport:
    """Report an error that names no event: one event failed; of several, any may have failed."""
    numbers = [event.sequence_number for event in part]
    if len(numbers) == 1:
        return FailureReport(failed={numbers[0]: error})
    return FailureReport(suspect=frozenset(numbers))


def next_part(pending: Sequence[_E], alone: Collection[int]) -> Sequence[_E]:
    """Return the next events to deliver: one that must be alone, or all events before the next."""
    if not alone:
        return pending
    if pending[0].sequence_number in alone:
        return pending[:1]
    for index, event in enumerate(pending):
        if event.sequence_number in alone:
            return pending[:index]
    return pending
