"""Which events to try next after a failure, and when to give one up.

After a failed call of the handler:

Rule 1: an event that is known to be handled is not delivered again.
Rule 2: if the error does not name an event, each event of the call is tried alone. That shows which
of them fails, and delivers each of the others only once more.
Rule 3: a call with columns is halved instead, and each half again, until the row is found: so one
row among 10,000 costs some 30 calls and not 10,000.
Rule 4: an event is given up only for failures of its own, not of the call that it was in.
Rule 5: an event whose body cannot be decoded is given up at once, whatever the policy's limit is.

After the death of the process: the checkpoint stores an *isolation* with the position. It says how
the events after the position were last delivered by a process that died: in an ordinary batch, in a
small part, or alone, and how often alone.

Rule 6: the isolation is stored before the events are delivered. Every later checkpoint repeats it
until the partition is closed normally, so a process that dies always leaves one.
Rule 7: events that were in a batch when a process died are delivered in small parts next, and the
isolation is stored before each part; events of a part in which a process died are delivered alone.
So after two deaths the poison event is alone. The cost is one write for each part, and one for each
event of one part.
Rule 8: an event is given up only if processes died while it was delivered alone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isqrt
from typing import Final, TypeVar

from eventproc._core.delivery.window import NUMBER_OF
from eventproc.errors import DecodeError
from eventproc.models import (
    ALONE,
    IN_BATCH,
    IN_PART,
    NOT_BEGUN,
    Isolation,
    IsolationMode,
    ReceivedEvent,
    alone,
)

_E = TypeVar("_E", bound=ReceivedEvent)

PART_MIN: Final = 32
"""The length of the first parts, in events. Later parts grow with the square root of the events
handled since: so *n* events cost about ``2 * sqrt(n)`` writes, and the one part with the poison
event as many again."""

ALONE_COUNT: Final = 100
"""How many events are delivered alone. Parts stay at most this long for 10,000 events."""


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

    _waits_in_row: int = 0
    _final: set[int] = field(default_factory=set)

    def note(self, report: FailureReport, transient: tuple[type[Exception], ...]) -> int:
        """Record a failed call; errors of the types *transient* do not count as attempts.

        Returns the number of the back-off before the next call, from 1; 0: no wait. Halving does
        not wait: its calls all fail because of the one row that it looks for.
        """
        is_first = not self.cuts
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
        if self.halves and suspect and not is_first:
            return 0
        self._waits_in_row += 1
        return self._waits_in_row

    def note_progress(self) -> None:
        """Record that an event was completed: the failures before say nothing of the next."""
        self._waits_in_row = 0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonSearch:
    """How to deliver the next events: in batches, in small parts, or alone."""

    isolation: Isolation
    """The isolation to store before them."""

    last_suspect: float = -inf
    """The highest sequence number that the poison event may have."""

    passed_count: int = 0
    """How many events were handled in this way."""

    @property
    def events_max(self) -> float:
        """How many events may be delivered for one stored isolation."""
        if self.isolation >= ALONE:
            return 1
        return max(PART_MIN, isqrt(self.passed_count)) if self.isolation == IN_PART else inf


def first_search(found: Isolation, last_suspect: float) -> PoisonSearch:
    """Return how to begin, by the isolation that the checkpoint has.

    *last_suspect* is the last event that a dead process can have received: the end of the
    partition, as far as it is known.
    """
    if found == NOT_BEGUN:
        return PoisonSearch(isolation=IN_BATCH)
    isolation = IN_PART if found == IN_BATCH else alone(found.alone_count + 1)
    return PoisonSearch(isolation=isolation, last_suspect=last_suspect)


def search_for(search: PoisonSearch, sequence_number: int) -> PoisonSearch:
    """Return how to deliver the next events, the first of which has this sequence number."""
    if sequence_number > search.last_suspect:
        return PoisonSearch(isolation=IN_BATCH)
    if search.isolation >= ALONE and search.passed_count >= ALONE_COUNT:
        search = PoisonSearch(isolation=IN_PART, last_suspect=search.last_suspect)
    if search.isolation == IN_PART and sequence_number == search.last_suspect:
        return replace(search, isolation=ALONE)  # There is no other suspect.
    return search


def search_after(search: PoisonSearch, count: int) -> PoisonSearch:
    """Return the search after *count* more events were handled."""
    return replace(
        search, isolation=min(search.isolation, ALONE), passed_count=search.passed_count + count
    )


def isolation_after_progress(isolation: Isolation) -> Isolation:
    """Return the isolation for a higher position: no event after it was delivered alone yet."""
    return IN_PART if isolation.mode is IsolationMode.ALONE else isolation


def isolation_at_rest(search: PoisonSearch) -> Isolation:
    """Return the isolation to store when the partition closes normally.

    Events that a dead process may have had, and that were not delivered again, stay suspects.
    """
    if search.isolation >= ALONE:
        return IN_PART
    return IN_BATCH if search.isolation == IN_PART else NOT_BEGUN


def deliveries_of(isolation: Isolation) -> int:
    """How often, at least, the next event was delivered to a process that died.

    Deliveries in a batch and in a part count once together.
    """
    return 0 if isolation == NOT_BEGUN else 1 + isolation.alone_count
