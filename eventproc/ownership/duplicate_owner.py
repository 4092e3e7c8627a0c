"""Two processors with one ``owner_id``: which of them stays?

Rule: of two processors that both consider the id theirs, exactly one yields, whichever records
each of them read.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.models import Member, MembershipSnapshot

OVERWRITES_MAX: Final = 3
"""How often two holders of one id may overwrite each other's record before one of them yields. A
processor that starts may write twice, if the outcome of its first write was unknown."""


class DuplicateOwnerArbiter:
    """Remembers the other incarnations of this ``owner_id``, and decides which one yields."""

    def __init__(
        self, incarnation: str, *, expiration: timedelta, clock: Callable[[], float]
    ) -> None:
        self._incarnation = incarnation
        self._expiration_s = expiration.total_seconds()
        self._clock = clock
        self._displaced: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._seen_at_s = float("-inf")

    @property
    def is_recent(self) -> bool:
        """Whether another incarnation was seen within the last expiration.

        A recent write under this id may then be the other's. Later it cannot be: an incarnation
        that yielded writes nothing more, and the ETags of its writes in flight are out of date.
        """
        return self._clock() - self._seen_at_s < self._expiration_s

    def note_replaced(self, incarnation: str) -> None:
        """Note that this incarnation replaced another one's record when it started."""
        self._displaced.add(incarnation)

    def must_yield_to(
        self, other: Member, present: MembershipSnapshot, answer_within: timedelta | None
    ) -> bool:
        """Whether *other*, which the member record names, stays and this incarnation has to yield.

        It has to in three cases: *other* was there before this one; *other* wrote its record
        longer ago than *answer_within*, so its wait for an objection is over; or both kept
        overwriting each other, and *other* has the higher incarnation.
        """
        self._seen_at_s = self._clock()
        self._counts[other.incarnation] += 1
        if other.incarnation in self._displaced:
            return True
        written, as_of = other.last_modified, present.as_of
        if (
            written is not None
            and as_of is not None
            and answer_within is not None
            and as_of - written > answer_within + present.resolution
        ):
            return True
        is_after = other.incarnation > self._incarnation
        return is_after and self._counts[other.incarnation] > OVERWRITES_MAX
