"""After a failed call of the handler: which events to try next, and when to give one up.

Rule 1: an event that is known to be handled is not delivered again.
Rule 2: if the error does not name an event, each event of the call is tried alone. That shows which
of them fails, and delivers each of the others only once more.
Rule 3: a call with columns is halved instead, and each half again, until the row is found: so one
row among 10,000 costs some 30 calls and not 10,000.
Rule 4: an event is given up only for failures of its own, not of the call that it was in.
Rule 5: an event whose body cannot be decoded is given up at once, whatever the policy's limit is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from eventproc.core.window import NUMBER_OF
from eventproc.errors import DecodeError
from eventproc.models import ReceivedEvent

_E = TypeVar("_E", bound=ReceivedEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """Which events of a failed call have failed, may have failed, or are done."""

    failed: Mapping[int, Exception] = field(default_factory=dict)
    """By sequence number: events known to have failed, and why."""

    suspect: Sequence[ReceivedEvent] = ()
    """Several events of which at least one failed; it is not known which."""

    done: Sequence[Sequence[ReceivedEvent]] = ()
    """Events known to be handled although the call failed: the parts between the others."""


@dataclass(slots=True)
class RetryState:
    """The failures of the events that are being retried."""

    halves: bool = False
    """Whether a call is halved after an error that names no event. If not, each event is alone."""

    cuts: list[int] = field(default_factory=list)
    """Sequence numbers, in order, at which a call has to begin: no call crosses one."""

    attempt_by_number: dict[int, int] = field(default_factory=dict)
    error_by_number: dict[int, Exception] = field(default_factory=dict)

    failures_in_row: int = 0
    """Failed calls since an event was completed."""

    wait: int = 0
    """The number of the back-off before the next call, from 1; 0: no wait.

    Halving does not wait: its calls all fail because of the one row that it looks for.
    """

    _waits_in_row: int = 0
    _final: set[int] = field(default_factory=set)

    def note(self, report: FailureReport, transient: tuple[type[Exception], ...]) -> None:
        """Record a failed call; errors of the types *transient* do not count as attempts."""
        is_first = not self.cuts
        self.failures_in_row += 1
        new = set(self.cuts)
        for number, error in report.failed.items():
            new |= {number, number + 1}
            self.error_by_number[number] = error
            if isinstance(error, DecodeError):
                self._final.add(number)
            if isinstance(error, DecodeError) or not isinstance(error, transient):
                self.attempt_by_number[number] = self.attempt_by_number.get(number, 0) + 1
        if suspect := report.suspect:
            chosen = [suspect[len(suspect) // 2]] if self.halves else suspect
            new.update(map(NUMBER_OF, chosen))
            new |= {suspect[0].sequence_number, suspect[-1].sequence_number + 1}
        self.cuts = sorted(new)
        is_search = self.halves and bool(suspect)
        if not is_search or is_first:
            self._waits_in_row += 1
        self.wait = self._waits_in_row if not is_search or is_first else 0

    def note_progress(self) -> None:
        """Record that an event was completed: the failures before say nothing of the next."""
        self.failures_in_row = self._waits_in_row = 0

    def exhausted(self, pending: Sequence[_E], attempts_max: int | None) -> list[_E]:
        """Return those of the pending events that failed for good, in order.

        They failed *attempts_max* times, or cannot be decoded.
        """
        numbers = [
            number
            for number, count in self.attempt_by_number.items()
            if number in self._final or (attempts_max is not None and count >= attempts_max)
        ]
        return [pending[at] for at in _places(pending, numbers)]


def blame(
    part: Sequence[ReceivedEvent],
    error: Exception,
    *,
    failed: Mapping[int, Exception] | None = None,
    untried: Collection[int] = (),
) -> FailureReport:
    """Report which events of a call have failed, may have failed, or are done.

    Args:
        part: Those events of the call, in order, that are not known to be handled.
        error: What the call raised.
        failed: The events that it names as failed, by sequence number, each with its own error.
            All others of *part* are done. If it names none of *part*, any of them may have failed.
        untried: The events that it names as not handled, by sequence number.
    """
    named = {n: why for n, why in (failed or {}).items() if _places(part, [n])}
    if named:
        return FailureReport(failed=named, done=_parts_without(part, {*named, *untried}))
    if len(part) == 1:
        return FailureReport(failed={part[0].sequence_number: error})
    return FailureReport(suspect=part)


def next_part(pending: Sequence[_E], retries: RetryState) -> Sequence[_E]:
    """Return the next events to deliver: all, or those before the next cut."""
    if not retries.cuts:
        return pending
    at = bisect_right(retries.cuts, pending[0].sequence_number)
    if at == len(retries.cuts):
        return pending
    return pending[: bisect_left(pending, retries.cuts[at], key=NUMBER_OF)]


def _parts_without(
    events: Sequence[ReceivedEvent], numbers: Collection[int]
) -> Sequence[Sequence[ReceivedEvent]]:
    """Return the parts between the events with these sequence numbers."""
    parts, begin = [], 0
    for at in _places(events, numbers):
        parts.append(events[begin:at])
        begin = at + 1
    parts.append(events[begin:])
    return tuple(part for part in parts if part)


def _places(events: Sequence[ReceivedEvent], numbers: Collection[int]) -> list[int]:
    """Return the indexes, in order, of those of the events that have one of these numbers."""
    found = [(bisect_left(events, number, key=NUMBER_OF), number) for number in sorted(numbers)]
    return [at for at, n in found if at < len(events) and events[at].sequence_number == n]
