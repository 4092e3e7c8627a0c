"""Isolating an event that kills the process: how many events to deliver for one checkpoint write.

The checkpoint stores an *isolation* with the position. It says how the events after the position
were last delivered by a process that died: in an ordinary batch, in a small part, or alone, and how
often alone.

Rule 1: the isolation is stored before the events are delivered. Every later checkpoint repeats it
until the partition is closed normally, so a process that dies always leaves one.
Rule 2: events that were in a batch when a process died are delivered in small parts next, and the
isolation is stored before each part; events of a part in which a process died are delivered alone.
So after two deaths the poison event is alone. The cost is one write for each part, and one for each
event of one part.
Rule 3: an event is given up only if processes died while it was delivered alone.
"""

from dataclasses import dataclass, replace
from math import inf, isqrt
from typing import Final

from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, Isolation, alone

PART_MIN: Final = 32
"""The length of the first parts, in events. Later parts grow with the square root of the events
handled since: so *n* events cost about ``2 * sqrt(n)`` writes, and the one part with the poison
event as many again."""

ALONE_COUNT: Final = 100
"""How many events are delivered alone. Parts stay at most this long for 10,000 events."""


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
    return min(isolation, IN_PART)


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
