"""Two processors with one ``owner_id``: which of them stays?

Rule: of two that both believe to hold the id exactly one yields, whatever each of them saw.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from eventproc.membership import Member, MembershipSnapshot

CONTESTS_MAX: Final = 3
"""How often two holders of one id may write over each other before one of them yields: more often
than a newcomer writes that was not told the outcome of its first attempt."""


class Contest:
    """What one incarnation knows of the others that used its ``owner_id``."""

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
        """Whether a stranger was seen so lately that what is written may be its work.

        Who yielded writes nothing more, and what it had in flight has an etag of the past by then.
        """
        return self._clock() - self._seen_at_s < self._expiration_s

    def enter_over(self, incarnation: str) -> None:
        """Note over whom this one entered; if that one comes back, it was there before."""
        self._displaced.add(incarnation)

    def is_won_by(
        self, other: Member, present: MembershipSnapshot, answer_within: timedelta | None
    ) -> bool:
        """Whether the stranger in the presence record stays, and this one has to yield.

        It does, if it was there first and came back; or if nobody answered it in time, so that it
        is in; or, between two that keep writing over each other, by their names.
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
        return is_after and self._counts[other.incarnation] > CONTESTS_MAX
