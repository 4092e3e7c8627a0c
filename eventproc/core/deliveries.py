"""Isolating an event that kills the process: how many events to deliver for one checkpoint write.

The checkpoint stores a *mark* (``delivery_count``) with the position. It says how the events after
the position were last delivered by a process that died: in an ordinary batch (1), in a small part
(2), alone once (3), alone twice (4), and so on.

Rule 1: the mark is stored before the events are delivered. Every later checkpoint repeats it until
the partition is closed normally, so a process that dies always leaves a mark.
Rule 2: events that were in a batch when a process died are delivered in small parts next, with a
mark stored before each; events of a part in which a process died are delivered alone. So after two
deaths the poison event is alone. The cost is one write for each part, and one for each event of
one part.
Rule 3: an event is given up only if processes died while it was delivered alone.
"""

from dataclasses import dataclass, replace
from math import inf, isqrt
from typing import Final

NO_MARK: Final = 0
AMONG_MANY: Final = 1
IN_PART: Final = 2
ALONE: Final = 3

PART_MIN: Final = 32
"""The length of the first parts, in events. Later parts grow with the square root of the events
handled since: so *n* events cost about ``2 * sqrt(n)`` marks, and the one part with the poison
event as many again."""

ALONE_COUNT: Final = 100
"""How many events are delivered alone. Parts stay at most this long for 10,000 events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How to deliver the next events: in batches, in small parts, or alone."""

    mark: int
    """The mark to store before them."""

    last_suspect: float = -inf
    """The highest sequence number that the poison event may have."""

    passed_count: int = 0
    """How many events were handled in this way."""

    @property
    def events_max(self) -> float:
        """How many events may be delivered for one stored mark."""
        if self.mark >= ALONE:
            return 1
        return max(PART_MIN, isqrt(self.passed_count)) if self.mark == IN_PART else inf


def first_isolation(found: int, last_suspect: float) -> Isolation:
    """Return how to begin, by the mark that the checkpoint has.

    *last_suspect* is the last event that a dead process can have received: the end of the
    partition, as far as it is known.
    """
    if found == NO_MARK:
        return Isolation(mark=AMONG_MANY)
    mark = IN_PART if found == AMONG_MANY else found + 1
    return Isolation(mark=mark, last_suspect=last_suspect)


def isolation_for(isolation: Isolation, sequence_number: int) -> Isolation:
    """Return how to deliver the next events, the first of which has this sequence number."""
    if sequence_number > isolation.last_suspect:
        return Isolation(mark=AMONG_MANY)
    if isolation.mark >= ALONE and isolation.passed_count >= ALONE_COUNT:
        isolation = Isolation(mark=IN_PART, last_suspect=isolation.last_suspect)
    if isolation.mark == IN_PART and sequence_number == isolation.last_suspect:
        return replace(isolation, mark=ALONE)  # There is no other suspect.
    return isolation


def isolation_after(isolation: Isolation, count: int) -> Isolation:
    """Return the isolation after *count* more events were handled."""
    return replace(
        isolation, mark=min(isolation.mark, ALONE), passed_count=isolation.passed_count + count
    )


def mark_after_progress(mark: int) -> int:
    """Return the mark for a higher position: no event after it was delivered alone yet."""
    return min(mark, IN_PART)


def mark_at_rest(isolation: Isolation) -> int:
    """Return the mark to store when the partition closes normally.

    Events that a dead process may have had, and that were not delivered again, stay suspects.
    """
    return min(isolation.mark, ALONE) - 1


def deliveries_of(mark: int) -> int:
    """How often, at least, the next event was delivered to a process that died.

    Deliveries in an ordinary batch count once together.
    """
    return mark - 1 if mark >= IN_PART else mark
